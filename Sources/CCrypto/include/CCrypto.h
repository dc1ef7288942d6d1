#ifndef CCRYPTO_H
#define CCRYPTO_H
#if defined(__linux__)
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#endif
#endif
