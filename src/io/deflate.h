/* SPDX-License-Identifier: Apache-2.0
 * Streams on top of streams: gzip (RFC 1952, several members one after the other count as one) and zlib (RFC 1950).
 * Offsets and messages of such a reader are those of the decompressed bytes. */
#ifndef TP_IO_DEFLATE_H
#define TP_IO_DEFLATE_H

#include "io/stream.h"

typedef enum tp_compression {
    TP_COMPRESSION_SNIFF, /* readers only: by the first bytes */
    TP_COMPRESSION_NONE,
    TP_COMPRESSION_GZIP,
    TP_COMPRESSION_ZLIB
} tp_compression;

/* "none", "gzip", "zlib"; "auto" for SNIFF. False when `name` is none of them. */
bool tp_compression_parse(const char *name, tp_compression *out_compression);
const char *tp_compression_name(tp_compression compression);

/* By magic numbers alone; NONE when there is none, or fewer than two bytes. */
tp_compression tp_compression_sniff(const void *head, size_t length);

/* Takes `source` over, also when it fails. `head` is what was read from it already; copied. TPUCL_CORRUPT_DATA
 * from reads names the file and the offset in it. NONE passes head and source through. */
tpucl_status tp_reader_adopt_inflate(tp_reader *source, tp_compression compression,
                                     const void *head, size_t head_length,
                                     tp_reader **out_reader) TPUCL_MUST_CHECK;

/* Takes `target` over, also when it fails. Level 1 to 9, 0: zlib's default. GZIP or ZLIB. */
tpucl_status tp_writer_adopt_deflate(tp_writer *target, tp_compression compression, int level,
                                     tp_writer **out_writer) TPUCL_MUST_CHECK;

#endif
