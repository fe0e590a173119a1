/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C (Castagnoli; RFC 3720, appendix B.4): reflected polynomial 0x82F63B78, initial value and final xor all
 * ones. With the processor's instruction where it has one. Thread-safe. */
#ifndef TP_CORE_CRC32C_H
#define TP_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of what came before, whose sum is `crc` (0: nothing), and `length` more bytes. */
uint32_t tp_crc32c(uint32_t crc, const void *bytes, size_t length);

/* The same from tables alone, as processors without the instruction get it. */
uint32_t tp_crc32c_portable(uint32_t crc, const void *bytes, size_t length);

/* What TFRecord files hold instead of the sum itself, so that a sum over bytes that contain sums stays a good
 * one (TensorFlow, tsl/lib/hash/crc32c.h). */
static inline uint32_t tp_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

#endif
