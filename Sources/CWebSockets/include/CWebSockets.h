// libwebsockets for Swift.
#ifndef CWEBSOCKETS_H
#define CWEBSOCKETS_H
#if defined(__linux__)
#include <libwebsockets.h>
#include "CWebSocketsClient.h"
#endif
#endif
