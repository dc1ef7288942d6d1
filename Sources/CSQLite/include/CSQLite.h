#ifndef CSQLITE_H
#define CSQLITE_H
#include <sqlite3.h>

/* SQLITE_TRANSIENT is a cast of -1 to a function pointer, which Swift cannot import. */
int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int length);
int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int length);

/* sqlite3_db_config is variadic, which Swift cannot call. */
int csqlite_set_defensive(sqlite3 *database, int on);

#endif
