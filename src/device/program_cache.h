/* SPDX-License-Identifier: Apache-2.0
 * Program binaries on disk, so that a second start does not compile.
 *
 * Key       SHA-256 over: format version, tpucl version, device name, driver version, device
 * version, platform name and version, number of compute units, build options, source text; each
 * with its length in front. Whatever of these changes gives another file; nothing is ever updated
 * in place. File      <folder>/<first two hex digits>/<key in hex>.clbin, little-endian: 0   8
 * magic "TPUCLBIN" 8   4  format version (TP_PROGRAM_CACHE_FORMAT) 12   4  CRC-32C of everything
 * from offset 16 on 16  32  key 48   8  payload length in bytes 56   .  payload: the driver's
 * program binary Bump the format version when this layout or the meaning of a key field changes.
 * Folder    $TPUCL_CACHE_DIR, else $XDG_CACHE_HOME/tpucl, else $HOME/.cache/tpucl; "programs" below
 * it. Writers   write a file aside under a name of their own and rename it, so readers see all or
 * nothing; two writers of one key write the same content, and the later rename wins. Readers trust
 * nothing: a wrong magic, version, key, length or checksum, or a binary that the driver refuses,
 * counts as a miss, and the file is written anew from source. A cache that cannot be written
 * (read-only, full disk) is no error: the program is built from source and a note says so. Size at
 * most max_bytes; when a store goes beyond it, the least recently used files (by access mark: a hit
 * touches the file's modification time) go until three quarters are left. Threads   a cache may be
 * shared by any number of threads, devices and processes.
 */
#ifndef TP_DEVICE_PROGRAM_CACHE_H
#define TP_DEVICE_PROGRAM_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

#define TP_PROGRAM_CACHE_FORMAT 1
#define TP_PROGRAM_CACHE_DEFAULT_BYTES ((uint64_t)256 << 20)

typedef struct tp_program_cache tp_program_cache;

/* `folder` NULL: the place described above. `max_bytes` 0: the default. The folder is made at the
 * first store. TPUCL_NOT_FOUND when no folder is given and none of the three variables is set. */
tpucl_status tp_program_cache_open(const char *folder, uint64_t max_bytes,
                                   tp_program_cache **out_cache);
void tp_program_cache_close(tp_program_cache *cache);

const char *tp_program_cache_folder(const tp_program_cache *cache);

typedef struct tp_program_cache_counts {
    uint64_t hits, misses, stores, rejected, evicted; /* rejected: files that failed a check */
    char last_problem[256]; /* why a store failed last, "" when none did */
} tp_program_cache_counts;
void tp_program_cache_get_counts(tp_program_cache *cache, tp_program_cache_counts *out_counts);

/* The payload for `key`; TPUCL_NOT_FOUND on a miss of any kind. Caller frees *out_data with free().
 */
tpucl_status tp_program_cache_load(tp_program_cache *cache, const uint8_t key[32], void **out_data,
                                   size_t *out_bytes);

/* Never fails the caller: a problem is counted and kept in last_problem. */
void tp_program_cache_store(tp_program_cache *cache, const uint8_t key[32], const void *data,
                            size_t bytes);

/* Removes the file of a binary that the driver refused. */
void tp_program_cache_reject(tp_program_cache *cache, const uint8_t key[32]);

#endif
