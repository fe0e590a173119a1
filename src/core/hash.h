/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 (FIPS 180-4), incremental: keys of caches, digests of variables and configurations. */
#ifndef TP_CORE_HASH_H
#define TP_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { TP_SHA256_BYTES = 32, TP_SHA256_HEX_BYTES = 65 /* with the zero */ };

typedef struct tp_sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[64];
} tp_sha256;

void tp_sha256_init(tp_sha256 *hash);
void tp_sha256_update(tp_sha256 *hash, const void *bytes, size_t length);
void tp_sha256_update_text(tp_sha256 *hash, const char *text); /* with its terminating zero */
void tp_sha256_finish(tp_sha256 *hash, uint8_t out_digest[TP_SHA256_BYTES]);
/* Lower case, zero-terminated. */
void tp_sha256_finish_hex(tp_sha256 *hash, char out_hex[TP_SHA256_HEX_BYTES]);
/* All at once. */
void tp_sha256_hex(const void *bytes, size_t length, char out_hex[TP_SHA256_HEX_BYTES]);

#endif
