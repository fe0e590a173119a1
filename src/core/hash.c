/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 as FIPS 180-4 section 6.2 states it. */
#include "core/hash.h"

#include <string.h>

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
 */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               block[3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) { /* v is a, b, c, d, e, f, g, h */
        uint32_t sum1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + sum1 + choice + round_constants[t] + w[t];
        uint32_t sum0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void tp_sha256_init(tp_sha256 *hash)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, initial, sizeof initial);
}

void tp_sha256_update(tp_sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *p = bytes;
    size_t filled = (size_t)(hash->length_bytes % 64);
    hash->length_bytes += length;
    if (filled) {
        size_t part = length < 64 - filled ? length : 64 - filled;
        memcpy(hash->block + filled, p, part);
        p += part;
        length -= part;
        if (filled + part < 64) return;
        compress(hash->state, hash->block);
    }
    for (; length >= 64; p += 64, length -= 64)
        compress(hash->state, p);
    if (length) memcpy(hash->block, p, length);
}

void tp_sha256_update_text(tp_sha256 *hash, const char *text)
{
    tp_sha256_update(hash, text, strlen(text) + 1);
}

void tp_sha256_finish(tp_sha256 *hash, uint8_t out_digest[TP_SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->length_bytes * 8;
    size_t filled = (size_t)(hash->length_bytes % 64);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    tp_sha256_update(hash, padding, filled < 56 ? 56 - filled : 120 - filled);
    tp_sha256_update(hash, length, sizeof length);
    for (int i = 0; i < TP_SHA256_BYTES; i++)
        out_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void tp_sha256_finish_hex(tp_sha256 *hash, char out_hex[TP_SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[TP_SHA256_BYTES];
    tp_sha256_finish(hash, digest);
    for (int i = 0; i < TP_SHA256_BYTES; i++) {
        out_hex[2 * i] = digits[digest[i] >> 4];
        out_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    out_hex[2 * TP_SHA256_BYTES] = '\0';
}

void tp_sha256_hex(const void *bytes, size_t length, char out_hex[TP_SHA256_HEX_BYTES])
{
    tp_sha256 hash;
    tp_sha256_init(&hash);
    tp_sha256_update(&hash, bytes, length);
    tp_sha256_finish_hex(&hash, out_hex);
}
