/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C: SSE4.2's instruction on x86, elsewhere eight tables (Kounavis and Berry, "A Systematic Approach to
 * Building High Performance, Software-based, CRC Generators", 2005). */
#include "core/crc32c.h"

#include <string.h>
#include "core/thread.h"

#define POLYNOMIAL UINT32_C(0x82f63b78)

static uint32_t tables[8][256];
static tp_once made_once = TP_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        tables[0][i] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
}

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t length)
{
    tp_once_run(&made_once, make_tables);
    for (; length >= 8; length -= 8, p += 8) {
        uint32_t next = 0;
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        for (int i = 0; i < 4; i++)
            next ^= tables[7 - i][crc >> (8 * i) & 255] ^ tables[3 - i][p[4 + i]];
        crc = next;
    }
    for (; length; length--, p++)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 255];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                                 size_t length)
{
    uint64_t wide = crc;
    for (; length >= 8; length -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; length; length--, p++)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}
#endif

uint32_t tp_crc32c(uint32_t crc, const void *bytes, size_t length)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~crc, bytes, length);
#endif
    return ~by_tables(~crc, bytes, length);
}
