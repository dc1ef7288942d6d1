#ifndef CBENCHMARKPEERS_H
#define CBENCHMARKPEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A string inside the parser's own buffer, valid until the next parse.
typedef struct {
  const char *start;
  size_t count;
} peer_text;

/// The benchmark's chat message as simdjson gives it.
typedef struct {
  int64_t message_id, created_at, updated_at;
  peer_text channel_id, client_id, type, text, custom_type;
  peer_text sender_id, sender_name, sender_url;
  peer_text mentions[8];
  size_t mention_count;
  bool silent;
} peer_message;

typedef void (*peer_sink)(void *context, const peer_message *message);

/// False where the package was built without simdjson's headers.
bool peer_simdjson_available(void);
/// Bytes that must be readable after a document.
size_t peer_simdjson_padding(void);
void *peer_simdjson_new(void);
void peer_simdjson_free(void *parser);
/// 0, or simdjson's error code.
int peer_simdjson_message(
  void *parser, const uint8_t *bytes, size_t count, size_t capacity, peer_message *message);
int peer_simdjson_array(
  void *parser, const uint8_t *bytes, size_t count, size_t capacity, peer_sink sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
