/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C (Castagnoli; RFC 3720, appendix B.4): reflected polynomial 0x82F63B78, initial value and final xor all
 * ones. With the processor's instruction where it has one. */
#ifndef TP_CORE_CRC32C_H
#define TP_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of what came before, whose sum is `crc` (0: nothing), and `length` more bytes. */
uint32_t tp_crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
