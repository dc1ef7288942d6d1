#ifndef CCURL_H
#define CCURL_H
#if defined(__linux__)
#include <curl/curl.h>
#endif
#endif
