/* SPDX-License-Identifier: Apache-2.0
 * zip archives, as Keras 3 stores models in them. An archive is hostile until parsed: what libzip accepts is
 * still refused here when it has
 *   - more entries, or larger ones, than any model has; a name that leaves the archive's folder ('..', a
 *     leading '/', a backslash) or stands twice; a symbolic link; encryption
 *   - a method other than stored and deflated, or an entry that grows to more than TP_ZIP_MAX_RATIO times
 *     its stored size, which no weights do (a bomb)
 * Nothing is ever unpacked to disk. A build without libzip answers every call with TPUCL_UNSUPPORTED.
 * Thread-compatible.
 */
#ifndef TP_IO_ZIP_H
#define TP_IO_ZIP_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

enum {
    TP_ZIP_MAX_ENTRIES = 4096,
    TP_ZIP_MAX_NAME_BYTES = 255,
    TP_ZIP_MAX_RATIO = 1000,             /* deflate itself ends at 1032 */
    TP_ZIP_RATIO_FREE_BYTES = 256 * 1024 /* entries up to here may have any ratio */
};
/* Of all entries together, unpacked. */
#define TP_ZIP_MAX_TOTAL_BYTES ((uint64_t)1 << 38)

typedef struct tp_zip tp_zip;

typedef struct tp_zip_entry {
    const char *name;
    uint64_t bytes, stored_bytes; /* unpacked, in the archive */
    uint64_t place;               /* the library's number of it */
} tp_zip_entry;

/* TPUCL_CORRUPT_DATA names archive, entry and what is wrong. */
tpucl_status tp_zip_open(const char *path, tp_zip **out_zip) TPUCL_MUST_CHECK;
/* `bytes` are borrowed until closed; `name` appears in messages. */
tpucl_status tp_zip_open_bytes(const void *bytes, size_t length, const char *name,
                               tp_zip **out_zip) TPUCL_MUST_CHECK;
void tp_zip_close(tp_zip *zip);

/* Entries in the archive's order, folders left out. Borrowed until closed. */
int32_t tp_zip_count(const tp_zip *zip);
const tp_zip_entry *tp_zip_entry_at(const tp_zip *zip, int32_t index);
const tp_zip_entry *tp_zip_find(const tp_zip *zip, const char *name); /* NULL when absent */

/* The whole entry, checked against its CRC-32, with a zero behind its last byte; more than `max_bytes` is
 * TPUCL_CORRUPT_DATA. Free with tp_free. */
tpucl_status tp_zip_read(tp_zip *zip, const tp_zip_entry *entry, uint64_t max_bytes,
                         char **out_bytes, size_t *out_length) TPUCL_MUST_CHECK;

typedef struct tp_zip_member {
    const char *name;
    const void *bytes;
    size_t length;
} tp_zip_member;

/* Stored, not deflated, as Keras does (weights hardly shrink); dated 1980, so that the same members give the
 * same bytes. Written aside, then renamed. */
tpucl_status tp_zip_write(const char *path, const tp_zip_member *members,
                          int32_t count) TPUCL_MUST_CHECK;

#endif
