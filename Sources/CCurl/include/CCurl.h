// What Swift needs of libcurl: its options are set through variadic functions, which Swift can't call.
#ifndef CCURL_H
#define CCURL_H
#if defined(__linux__)
#include <curl/curl.h>

CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value);
CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value);
/// libcurl copies strings.
CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value);
CURLcode ccurl_set_headers(CURL *handle, struct curl_slist *headers);
/// libcurl copies the body at once.
CURLcode ccurl_set_body(CURL *handle, const void *bytes, size_t count);
CURLcode ccurl_set_private(CURL *handle, void *context);

CURLcode ccurl_set_write(CURL *handle, size_t (*callback)(char *, size_t, size_t, void *), void *context);
CURLcode ccurl_set_header(CURL *handle, size_t (*callback)(char *, size_t, size_t, void *), void *context);
CURLcode ccurl_set_progress(
    CURL *handle, int (*callback)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t), void *context);
/// Called each time that libcurl is about to send the request on a connection.
CURLcode ccurl_set_prerequest(CURL *handle, int (*callback)(void *, char *, char *, int, int), void *context);

CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value);
CURLcode ccurl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value);
CURLcode ccurl_get_private(CURL *handle, void **context);

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);
/// The outcome that a message of `curl_multi_info_read` carries, and whether it carries one.
int ccurl_is_done(const CURLMsg *message, CURLcode *result);
#endif
#endif
