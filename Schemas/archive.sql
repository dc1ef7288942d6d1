-- An archive: everything that a source gave, in one SQLite file, with the bytes of attachments beside it in
-- `<archive>.files/ab/cdef…`, named by their SHA-256 (two digits as folder, 62 as name).
--
-- Owner-only (0600). In WAL mode while open; closing brings everything into the one file.
-- `record` is the neutral record (records.schema.json) as canonical JSON without its `raw`; `raw` is what the vendor
-- sent, byte for byte. Ids are compared by bytes. Times are milliseconds since 1970.
PRAGMA application_id = 1430471016;  -- "UCAh"
PRAGMA user_version = 3;

-- What the archive is: `id`, `tool`, `vendor`, `app`, `created_at`; once complete `completed_at`, `digest.users`,
-- `digest.channels`, `digest.files`, `digest.unreadable`, `digest.rows` where there are any, `digest`; `rereading` during a second reading: `all`, or `lists` when
-- of messages only new ones are sought; `order`:
-- how often an import put older messages before others, which gives messages new numbers; `left_out`: what the
-- source does not read, as a JSON array of texts.
CREATE TABLE manifest (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE users (
  ordinal INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  placeholder INTEGER NOT NULL,   -- 1: known only as a member, sender or reactor
  record TEXT NOT NULL,
  raw TEXT
);

CREATE TABLE channels (
  ordinal INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  record TEXT NOT NULL,
  raw TEXT,
  messages INTEGER,               -- these four once the archive is complete
  first_at INTEGER,
  last_at INTEGER,
  digest TEXT                     -- SHA-256 over the channel, its members by id and its messages in order
);

CREATE TABLE members (
  channel INTEGER NOT NULL REFERENCES channels (ordinal),
  user TEXT NOT NULL,
  record TEXT NOT NULL,
  raw TEXT,
  PRIMARY KEY (channel, user)
) WITHOUT ROWID;

-- In the order of the source: `ordinal` counts up in each channel and is never given twice.
CREATE TABLE messages (
  channel INTEGER NOT NULL REFERENCES channels (ordinal),
  ordinal INTEGER NOT NULL,
  id TEXT NOT NULL,
  sender TEXT,
  created_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  record TEXT NOT NULL,
  raw TEXT,
  PRIMARY KEY (channel, ordinal)
) WITHOUT ROWID;
CREATE UNIQUE INDEX messages_by_id ON messages (channel, id);

-- Attachments whose bytes are here.
CREATE TABLE files (
  sha256 TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  name TEXT,
  mime_type TEXT
) WITHOUT ROWID;

-- Where bytes came from, so that a file used twice is fetched once.
CREATE TABLE file_urls (
  url TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL REFERENCES files (sha256)
) WITHOUT ROWID;

-- What the source could not read, and files that could not be fetched.
CREATE TABLE unreadable (
  ordinal INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,             -- user, channel, member, message, file, row, envelope
  id TEXT,
  channel TEXT,
  reason TEXT NOT NULL,
  raw TEXT
);
CREATE INDEX unreadable_by_id ON unreadable (kind, id, channel);

-- How far the reading has come; changed in the same transaction as the rows of a page. `channel` is 0 for lists that
-- belong to none.
CREATE TABLE cursors (
  list TEXT NOT NULL,             -- users, channels, members, messages, rows
  channel INTEGER NOT NULL,
  cursor TEXT,                    -- of the next page; of the last page once done
  done INTEGER NOT NULL,
  PRIMARY KEY (list, channel)
) WITHOUT ROWID;

-- Version 2 adds what follows.

-- Items that a later reading found different (edited, recalled, moved read mark, other role) or gone, so that a second
-- load writes these and no others. `channel` is 0 for users. Items that were new stand only in their own table.
CREATE TABLE changes (
  number INTEGER PRIMARY KEY,     -- counts up
  list TEXT NOT NULL,             -- users, channels, members, messages
  channel INTEGER NOT NULL,
  id TEXT NOT NULL,
  removed INTEGER NOT NULL,       -- 1: no longer at the source; its row here is gone, but for channels
  ordinal INTEGER                 -- that a removed message had, which is not given again
);
CREATE INDEX changes_by_channel ON changes (channel, number);
CREATE INDEX changes_by_ordinal ON changes (channel, ordinal) WHERE ordinal IS NOT NULL;

-- During a second reading: what has been seen of each list. Empty otherwise.
CREATE TABLE seen (
  list TEXT NOT NULL,
  channel INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (list, channel, id)
) WITHOUT ROWID;

-- Version 3 adds what follows.

-- What belongs to chat at the vendor and has no place among the records, as the vendor gave it: devices, friends. Nothing
-- of it is loaded anywhere. A row that is no longer at the source stays.
CREATE TABLE vendor_rows (
  kind TEXT NOT NULL,             -- the vendor's name of the list
  id TEXT NOT NULL,
  user TEXT,                      -- whose it is, where it says
  channel TEXT,
  raw TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) WITHOUT ROWID;
