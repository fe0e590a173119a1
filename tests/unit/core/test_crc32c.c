/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C: published vectors, and both ways of computing it against each other around every length at which the
 * code changes its stride. */
#include <criterion/criterion.h>
#include <string.h>
#include "core/crc32c.h"

static uint8_t noise[40000];

static void make_noise(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        state = state * 1664525 + 1013904223;
        noise[i] = (uint8_t)(state >> 24);
    }
}

TestSuite(crc32c, .init = make_noise);

/* A bit at a time, from the definition. */
static uint32_t slow(uint32_t crc, const uint8_t *p, size_t length)
{
    crc = ~crc;
    for (; length; length--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ UINT32_C(0x82f63b78) : crc >> 1;
    }
    return ~crc;
}

/* "123456789": Koopman's catalogue; the others: RFC 3720, appendix B.4. */
Test(crc32c, agrees_with_published_vectors)
{
    uint8_t bytes[32];
    cr_assert_eq(tp_crc32c(0, "", 0), 0);
    cr_assert_eq(tp_crc32c(0, "123456789", 9), 0xe3069283);
    cr_assert_eq(tp_crc32c_portable(0, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    cr_assert_eq(tp_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    cr_assert_eq(tp_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    cr_assert_eq(tp_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
    cr_assert_eq(tp_crc32c_portable(0, bytes, sizeof bytes), 0x46dd794e);
}

Test(crc32c, masks_as_tfrecord_files_do)
{
    static const uint8_t zeros[8] = {0};
    cr_assert_eq(tp_crc32c_mask(tp_crc32c(0, zeros, 8)), 0x07980329);
    cr_assert_eq(tp_crc32c_mask(0), 0xa282ead8);
}

Test(crc32c, both_ways_agree_at_every_length_and_alignment)
{
    static const size_t near[] = {0, 8, 24, 256, 768, 1536, 4096, 12288, 12288 + 768, 24576, 36864};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        for (size_t more = 0; more < 20; more++)
            for (size_t begin = 0; begin < 9; begin += 1 + more % 3) {
                const uint32_t fast = tp_crc32c(7, noise + begin, near[i] + more);
                cr_assert_eq(fast, tp_crc32c_portable(7, noise + begin, near[i] + more));
                if (begin == 0)
                    cr_assert_eq(fast, slow(7, noise, near[i] + more), "%zu", near[i] + more);
            }
}

Test(crc32c, goes_on_where_it_stopped)
{
    const uint32_t whole = tp_crc32c(0, noise, sizeof noise);
    for (size_t cut = 0; cut <= sizeof noise; cut += 997)
        cr_assert_eq(tp_crc32c(tp_crc32c(0, noise, cut), noise + cut, sizeof noise - cut), whole);
}
