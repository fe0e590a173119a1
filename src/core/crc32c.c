/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C: the instruction of SSE4.2 or ARMv8, chosen when it is first needed; elsewhere eight tables (Kounavis
 * and Berry, "A Systematic Approach to Building High Performance, Software-based, CRC Generators", 2005).
 *
 * The instruction takes 8 bytes a cycle but answers after three, so that one chain of them leaves two thirds of
 * it idle. Long inputs are cut into three stretches that are summed side by side. Sums are linear: the sum of a
 * stretch moves behind the next one's by being multiplied by x^(8 * bytes), modulo the polynomial; the products
 * with each of its four bytes are tables. */
#include "core/crc32c.h"

#include <stdbool.h>
#include <string.h>
#include "core/thread.h"
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78)

#if defined(__x86_64__)
#define HAS_INSTRUCTION 1
#define TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && defined(__linux__)
#define HAS_INSTRUCTION 1
#define TARGET
#else
#define HAS_INSTRUCTION 0
#endif

/* Bytes of a stretch: as many as pay for joining them, and few for what is left. */
enum { LONG_BYTES = 4096, SHORT_BYTES = 256 };

static uint32_t tables[8][256];
static uint32_t long_shift[4][256], short_shift[4][256];
static tp_once made_once = TP_ONCE_INIT;

/* `crc` behind one more byte of zeros. */
static uint32_t shift_byte(uint32_t crc)
{
    return crc >> 8 ^ tables[0][crc & 255];
}

/* What each byte of a sum becomes behind `bytes` zeros: from the 32 bits, whose images add up. */
static void make_shift(uint32_t shift[4][256], int bytes)
{
    uint32_t images[32];
    for (int bit = 0; bit < 32; bit++) {
        images[bit] = UINT32_C(1) << bit;
        for (int i = 0; i < bytes; i++)
            images[bit] = shift_byte(images[bit]);
    }
    for (int part = 0; part < 4; part++)
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1) sum ^= images[8 * part + bit];
            shift[part][value] = sum;
        }
}

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
    make_shift(long_shift, LONG_BYTES);
    make_shift(short_shift, SHORT_BYTES);
}

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t length)
{
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

#if HAS_INSTRUCTION
TARGET static inline uint32_t add_byte(uint32_t crc, uint8_t byte)
{
#if defined(__x86_64__)
    return __builtin_ia32_crc32qi(crc, byte);
#else
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
#endif
}

TARGET static inline uint32_t add_word(uint32_t crc, const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if defined(__x86_64__)
    return (uint32_t)__builtin_ia32_crc32di(crc, word);
#else
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
#endif
}

static inline uint32_t shifted(uint32_t shift[4][256], uint32_t crc)
{
    return shift[0][crc & 255] ^ shift[1][crc >> 8 & 255] ^ shift[2][crc >> 16 & 255] ^
           shift[3][crc >> 24];
}

/* Three stretches of `bytes` each, side by side. */
TARGET static inline uint32_t add_three(uint32_t crc, const uint8_t *p, size_t bytes,
                                        uint32_t shift[4][256])
{
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        crc = add_word(crc, p + i);
        second = add_word(second, p + bytes + i);
        third = add_word(third, p + 2 * bytes + i);
    }
    return shifted(shift, shifted(shift, crc) ^ second) ^ third;
}

TARGET static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t length)
{
    for (; length >= 3 * LONG_BYTES; length -= 3 * LONG_BYTES, p += 3 * LONG_BYTES)
        crc = add_three(crc, p, LONG_BYTES, long_shift);
    for (; length >= 3 * SHORT_BYTES; length -= 3 * SHORT_BYTES, p += 3 * SHORT_BYTES)
        crc = add_three(crc, p, SHORT_BYTES, short_shift);
    for (; length >= 8; length -= 8, p += 8)
        crc = add_word(crc, p);
    for (; length; length--, p++)
        crc = add_byte(crc, *p);
    return crc;
}

static bool has_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
#endif
}
#endif

uint32_t tp_crc32c_portable(uint32_t crc, const void *bytes, size_t length)
{
    tp_once_run(&made_once, make_tables);
    return ~by_tables(~crc, bytes, length);
}

uint32_t tp_crc32c(uint32_t crc, const void *bytes, size_t length)
{
#if HAS_INSTRUCTION
    tp_once_run(&made_once, make_tables);
    if (has_instruction()) return ~by_instruction(~crc, bytes, length);
#endif
    return tp_crc32c_portable(crc, bytes, length);
}
