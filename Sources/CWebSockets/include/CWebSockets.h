// libwebsockets for Swift: what both sides share, and a shim for each.
#ifndef CWEBSOCKETS_H
#define CWEBSOCKETS_H
#if defined(__linux__)
#include <libwebsockets.h>
#include "CWebSocketsClient.h"
#if __has_include("CWebSocketsServer.h")
#include "CWebSocketsServer.h"
#endif
#endif
#endif
