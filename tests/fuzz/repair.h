/* SPDX-License-Identifier: Apache-2.0
 * Mutations of containers rarely get past the checksums. A target that calls this for its own mutator lets
 * changes through to what lies behind them. */
#ifndef TP_FUZZ_REPAIR_H
#define TP_FUZZ_REPAIR_H

#include <stddef.h>
#include <stdint.h>

/* Writes the right CRC-32 of every stored (uncompressed) entry into its local header and into the central
 * directory of a zip archive, as far as one can be made out; anything else stays as it is. In place. */
void tp_fuzz_repair_zip(uint8_t *bytes, size_t size);

/* Puts the checksums of a plain TFRecord file right: of every length, and of what lies whole behind it. */
void tp_fuzz_repair_records(uint8_t *data, size_t size);

#endif
