#ifndef CCRYPTO_H
#define CCRYPTO_H
#if defined(__linux__)
#include <openssl/evp.h>
#endif
#endif
