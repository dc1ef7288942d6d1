// WebSocket client connections over libwebsockets. Everything but `lws_cancel_service` is called on the thread that
// runs `lws_service`.
#ifndef CWEBSOCKETSCLIENT_H
#define CWEBSOCKETSCLIENT_H
#if defined(__linux__)
#include <libwebsockets.h>
#include <stddef.h>
#include <stdint.h>

/// Bytes that libwebsockets wants to own before a message that is sent.
size_t cws_client_headroom(void);

/// A context without any virtual host. `user` comes back from `lws_context_user`.
struct lws_context *cws_client_context(void *user);

/// A virtual host whose connections report to `callback`. `certificate_authorities` is the path of a PEM file, or NULL
/// for the system's authorities. Proxies of the environment are not used.
struct lws_vhost *cws_client_vhost(
    struct lws_context *context, const char *name, lws_callback_function *callback,
    const char *certificate_authorities);

struct cws_target {
  /// Numeric: libwebsockets would block its thread for a look-up.
  const char *address;
  int port;
  int is_secure;
  /// Path and query, at most `cws_client_longest_path` bytes.
  const char *path;
  /// The `Host` field, whose name the certificate must have.
  const char *host;
  /// Comma-separated, or NULL.
  const char *subprotocols;
};

/// Longer ones, libwebsockets would cut without a word.
size_t cws_client_longest_path(void);
size_t cws_client_longest_host(void);

/// NULL if nothing was started; no callback comes then.
struct lws *cws_client_connect(
    struct lws_context *context, struct lws_vhost *vhost, const struct cws_target *target, void *user);

/// One line of the upgrade request, written at `*position`. Returns 0 where `room` does not suffice.
int cws_client_append(char **position, size_t *room, const char *name, const char *value);

/// The fields of an answer, for those names that libwebsockets knows.
void cws_client_headers(
    struct lws *wsi, void *user, void (*field)(void *user, const char *name, const char *value));

/// The value of the subprotocol that the server chose, or 0.
int cws_client_subprotocol(struct lws *wsi, char *buffer, size_t size);

/// Reads the body of an answer that refuses the upgrade; it comes by `LWS_CALLBACK_RECEIVE_CLIENT_HTTP_READ`.
/// Waits for at most `milliseconds` altogether.
void cws_client_read_refusal(struct lws *wsi, int milliseconds);

/// Ends a connection soon, without a close frame.
void cws_client_kill(struct lws *wsi);
/// Ends a connection if it has not ended by itself in that time.
void cws_client_kill_later(struct lws *wsi, int seconds);

struct cws_timer;
/// Calls `fire` once. NULL when memory runs out.
struct cws_timer *cws_timer_start(
    struct lws_context *context, int64_t microseconds, void (*fire)(void *user), void *user);
/// Also after it has fired; the timer is gone then.
void cws_timer_free(struct cws_timer *timer);
#endif
#endif
