#if defined(__linux__)
#define _GNU_SOURCE
#include "CWebSocketsClient.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  // The pieces in which messages arrive, and the most that is read and written at a time.
  piece = 16 << 10,
  service_buffer = 64 << 10,
  // Header fields of an answer, together with what we ask for.
  header_room = 16 << 10,
  // Times are kept by our own timers; libwebsockets' ones must not come first.
  never_seconds = 7 * 24 * 3600,
  // A dead network is noticed after about a minute.
  keepalive_idle = 30,
  keepalive_interval = 10,
  keepalive_probes = 3,
};

size_t cws_client_headroom(void) { return LWS_PRE; }

// The request line and the Host line go through buffers of 2048 and 128 bytes.
size_t cws_client_longest_path(void) { return 2048 - sizeof("GET  HTTP/1.1\r\n") - 1; }
size_t cws_client_longest_host(void) { return 128 - sizeof("Host: \r\n") - 1; }

struct lws_context *cws_client_context(void *user) {
  struct lws_context_creation_info info;
  memset(&info, 0, sizeof info);
  lws_set_log_level(0, NULL);
  info.port = CONTEXT_PORT_NO_LISTEN;
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
  info.user = user;
  info.pt_serv_buf_size = service_buffer;
  info.max_http_header_data = header_room;
  info.timeout_secs = never_seconds;
  return lws_create_context(&info);
}

struct lws_vhost *cws_client_vhost(
    struct lws_context *context, const char *name, lws_callback_function *callback,
    const char *certificate_authorities) {
  static struct lws_protocols protocols[2];
  struct lws_context_creation_info info;
  memset(&info, 0, sizeof info);
  protocols[0].name = "client";
  protocols[0].callback = callback;
  protocols[0].rx_buffer_size = piece;
  info.port = CONTEXT_PORT_NO_LISTEN;
  info.vhost_name = name;
  info.protocols = protocols;
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
  if (certificate_authorities) {
    info.client_ssl_ca_filepath = certificate_authorities;
    info.options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
  }
  // No extensions: with permessage-deflate, libwebsockets aborts the process on an empty text message.
  info.extensions = NULL;
  // Port 0 stands for "no proxy"; without it the variable http_proxy would count.
  info.http_proxy_address = ":0";
  info.timeout_secs = never_seconds;
  info.connect_timeout_secs = never_seconds;
  info.ka_time = keepalive_idle;
  info.ka_interval = keepalive_interval;
  info.ka_probes = keepalive_probes;
  return lws_create_vhost(context, &info);
}

struct lws *cws_client_connect(
    struct lws_context *context, struct lws_vhost *vhost, const struct cws_target *target, void *user) {
  struct lws_client_connect_info info;
  memset(&info, 0, sizeof info);
  info.context = context;
  info.vhost = vhost;
  info.address = target->address;
  info.port = target->port;
  info.path = target->path;
  info.host = target->host;
  info.protocol = target->subprotocols;
  info.local_protocol_name = "client";
  // A WebSocket can't be opened over HTTP/2 by this library; it must not be negotiated.
  info.alpn = "http/1.1";
  info.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT | (target->is_secure ? LCCSCF_USE_SSL : 0);
  info.userdata = user;
  return lws_client_connect_via_info(&info);
}

int cws_client_append(char **position, size_t *room, const char *name, const char *value) {
  size_t name_length = strlen(name), value_length = strlen(value);
  if (name_length + value_length + 4 > *room)
    return 0;
  char *p = *position;
  memcpy(p, name, name_length);
  p += name_length;
  memcpy(p, ": ", 2);
  p += 2;
  memcpy(p, value, value_length);
  p += value_length;
  memcpy(p, "\r\n", 2);
  p += 2;
  *room -= (size_t)(p - *position);
  *position = p;
  return 1;
}

void cws_client_headers(
    struct lws *wsi, void *user, void (*field)(void *user, const char *name, const char *value)) {
  char name[128], value[header_room];
  for (int token = 0;; token++) {
    const char *text = (const char *)lws_token_to_string((enum lws_token_indexes)token);
    if (!text)
      return;
    size_t length = strlen(text);
    // Methods and HTTP/2's own names are in the same list.
    if (length < 2 || length >= sizeof name || text[0] == ':' || text[length - 1] != ':')
      continue;
    if (lws_hdr_total_length(wsi, (enum lws_token_indexes)token) <= 0)
      continue;
    if (lws_hdr_copy(wsi, value, sizeof value, (enum lws_token_indexes)token) < 0)
      continue;
    memcpy(name, text, length - 1);
    name[length - 1] = 0;
    field(user, name, value);
  }
}

int cws_client_subprotocol(struct lws *wsi, char *buffer, size_t size) {
  return lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) > 0 &&
         lws_hdr_copy(wsi, buffer, (int)size, WSI_TOKEN_PROTOCOL) > 0;
}

static int64_t milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cws_client_read_refusal(struct lws *wsi, int milliseconds) {
  const int64_t end = milliseconds_now() + milliseconds;
  char buffer[LWS_PRE + 4096], length[8];
  if (lws_hdr_copy(wsi, length, sizeof length, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 && !strcmp(length, "0"))
    return;
  for (;;) {
    char *bytes = buffer + LWS_PRE;
    int count = sizeof buffer - LWS_PRE;
    const char *before = bytes;
    // Also the end of the body comes as a failure, since the callback asks for no further request.
    if (lws_http_client_read(wsi, &bytes, &count) < 0)
      return;
    // What is in libwebsockets' own buffers moves the pointer away from ours.
    if (bytes != before)
      continue;
    int64_t rest = end - milliseconds_now();
    struct pollfd descriptor = {.fd = lws_get_socket_fd(wsi), .events = POLLIN};
    if (rest <= 0 || poll(&descriptor, 1, (int)rest) <= 0)
      return;
  }
}

void cws_client_kill(struct lws *wsi) {
  lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

void cws_client_kill_later(struct lws *wsi, int seconds) {
  lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, seconds);
}

struct cws_timer {
  lws_sorted_usec_list_t entry;
  struct lws_context *context;
  void (*fire)(void *user);
  void *user;
};

static void fire(lws_sorted_usec_list_t *entry) {
  struct cws_timer *timer = lws_container_of(entry, struct cws_timer, entry);
  timer->fire(timer->user);
}

struct cws_timer *cws_timer_start(
    struct lws_context *context, int64_t microseconds, void (*callback)(void *user), void *user) {
  struct cws_timer *timer = calloc(1, sizeof *timer);
  if (!timer)
    return NULL;
  timer->context = context;
  timer->fire = callback;
  timer->user = user;
  lws_sul_schedule(context, 0, &timer->entry, fire, microseconds);
  return timer;
}

void cws_timer_free(struct cws_timer *timer) {
  if (!timer)
    return;
  lws_sul_schedule(timer->context, 0, &timer->entry, NULL, LWS_SET_TIMER_USEC_CANCEL);
  free(timer);
}
#endif
