// simdjson's On-Demand front end, fields asked for in document order: its fastest way.
#include "CBenchmarkPeers.h"

#ifdef PEER_SIMDJSON
#include <simdjson.h>

using namespace simdjson;

static peer_text text_of(std::string_view view) { return {view.data(), view.size()}; }

static void fill(ondemand::object object, peer_message &out) {
  out.message_id = object.find_field("msgId").get_int64();
  out.channel_id = text_of(object.find_field("channelId"));
  out.client_id = text_of(object.find_field("clientId"));
  out.type = text_of(object.find_field("type"));
  out.text = text_of(object.find_field("text"));
  out.custom_type = text_of(object.find_field("customType"));
  ondemand::object sender = object.find_field("sender");
  out.sender_id = text_of(sender.find_field("userId"));
  out.sender_name = text_of(sender.find_field("nickname"));
  out.sender_url = text_of(sender.find_field("url"));
  out.mention_count = 0;
  for (ondemand::value user : object.find_field("mentions").get_array()) {
    if (out.mention_count < 8) out.mentions[out.mention_count++] = text_of(user);
  }
  out.silent = object.find_field("silent").get_bool();
  out.created_at = object.find_field("createdAt").get_int64();
  out.updated_at = object.find_field("updatedAt").get_int64();
}

extern "C" bool peer_simdjson_available(void) { return true; }
extern "C" size_t peer_simdjson_padding(void) { return SIMDJSON_PADDING; }
extern "C" void *peer_simdjson_new(void) { return new ondemand::parser; }
extern "C" void peer_simdjson_free(void *parser) { delete static_cast<ondemand::parser *>(parser); }

extern "C" int peer_simdjson_message(
  void *parser, const uint8_t *bytes, size_t count, size_t capacity, peer_message *message) {
  try {
    ondemand::document document =
      static_cast<ondemand::parser *>(parser)->iterate(padded_string_view(bytes, count, capacity));
    fill(document.get_object(), *message);
    return 0;
  } catch (const simdjson_error &error) {
    return error.error();
  }
}

extern "C" int peer_simdjson_array(
  void *parser, const uint8_t *bytes, size_t count, size_t capacity, peer_sink sink, void *context) {
  try {
    ondemand::document document =
      static_cast<ondemand::parser *>(parser)->iterate(padded_string_view(bytes, count, capacity));
    peer_message message;
    for (ondemand::object object : document.get_array()) {
      fill(object, message);
      sink(context, &message);
    }
    return 0;
  } catch (const simdjson_error &error) {
    return error.error();
  }
}

#else

extern "C" bool peer_simdjson_available(void) { return false; }
extern "C" size_t peer_simdjson_padding(void) { return 0; }
extern "C" void *peer_simdjson_new(void) { return nullptr; }
extern "C" void peer_simdjson_free(void *) {}
extern "C" int peer_simdjson_message(void *, const uint8_t *, size_t, size_t, peer_message *) { return -1; }
extern "C" int peer_simdjson_array(void *, const uint8_t *, size_t, size_t, peer_sink, void *) { return -1; }

#endif
