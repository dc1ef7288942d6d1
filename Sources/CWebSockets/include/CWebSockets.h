#ifndef CWEBSOCKETS_H
#define CWEBSOCKETS_H
#if defined(__linux__)
#include <libwebsockets.h>
#endif
#endif
