#include "CCurl.h"

#if defined(__linux__)
CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}

CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

CURLcode ccurl_set_headers(CURL *handle, struct curl_slist *headers) {
  return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

CURLcode ccurl_set_body(CURL *handle, const void *bytes, size_t count) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_POST, 1L);
  if (result == CURLE_OK)
    result = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  if (result == CURLE_OK)
    result = curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, count ? bytes : "");
  return result;
}

CURLcode ccurl_set_private(CURL *handle, void *context) {
  return curl_easy_setopt(handle, CURLOPT_PRIVATE, context);
}

CURLcode ccurl_set_write(CURL *handle, size_t (*callback)(char *, size_t, size_t, void *), void *context) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
  return result == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_WRITEDATA, context) : result;
}

CURLcode ccurl_set_header(CURL *handle, size_t (*callback)(char *, size_t, size_t, void *), void *context) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, callback);
  return result == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_HEADERDATA, context) : result;
}

CURLcode ccurl_set_progress(
    CURL *handle, int (*callback)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t), void *context) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
  if (result == CURLE_OK)
    result = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
  return result == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L) : result;
}

CURLcode ccurl_set_prerequest(CURL *handle, int (*callback)(void *, char *, char *, int, int), void *context) {
  CURLcode result = curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, callback);
  return result == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_PREREQDATA, context) : result;
}

CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}

CURLcode ccurl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(handle, info, value);
}

CURLcode ccurl_get_private(CURL *handle, void **context) {
  return curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)context);
}

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

int ccurl_is_done(const CURLMsg *message, CURLcode *result) {
  if (message->msg != CURLMSG_DONE)
    return 0;
  *result = message->data.result;
  return 1;
}
#endif
