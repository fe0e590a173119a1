/* SPDX-License-Identifier: Apache-2.0
 * Program binaries on disk, so that a second start does not compile.
 *
 * Key      SHA-256 over format version, tpucl version, device name, driver version, device version,
 *          platform name, platform version, build options, source text, each with its terminating
 *          zero. Whatever of these changes gives another file; nothing is ever updated in place.
 * File     <folder>/<key in hex>.clbin, little-endian:
 *              0   8  magic "TPUCLBIN"
 *              8   4  format version (TP_PROGRAM_CACHE_FORMAT)
 *             12   4  CRC-32 (zlib's) of everything from offset 16 on
 *             16  32  key
 *             48   8  payload length in bytes
 *             56   -  payload: the driver's program binary
 *          Raise the format version when this layout or the meaning of a key field changes.
 * Folder   "programs" in $TPUCL_CACHE_DIR, else in $XDG_CACHE_HOME/tpucl, else in
 *          $HOME/.cache/tpucl.
 * Writers  write a file aside and rename it, so readers see all or nothing. Two writers of one key
 *          write equally good content, and the later rename wins. No locks.
 * Readers  trust nothing: a wrong magic, version, key, length or checksum, or a binary that the
 *          driver refuses, counts as a miss; the file is removed and the program built from source.
 *          A cache that cannot be written (read-only, full disk) is no error: it only stays cold.
 * Size     at most max_bytes: a store that goes beyond removes the least recently used files (a hit
 *          sets the file's modification time) until three quarters are left.
 * Threads  a cache may be shared by any number of threads, devices and processes.
 *
 * What is worth storing was measured with PoCL 3.1: a program whose kernels PoCL has in its own cache takes 19 ms of
 * processor time from source, nearly all of it for preprocessing OpenCL's own header, and 2.4 ms from our binary.
 */
#ifndef TP_DEVICE_PROGRAM_CACHE_H
#define TP_DEVICE_PROGRAM_CACHE_H

#include <stdbool.h>
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

/* The payload for `key`; TPUCL_NOT_FOUND on a miss of any kind. Free *out_data with
 * tp_free. */
tpucl_status tp_program_cache_load(tp_program_cache *cache, const uint8_t key[32], void **out_data,
                                   size_t *out_bytes);

/* Whether there is a file for `key`, whatever is in it. */
bool tp_program_cache_has(const tp_program_cache *cache, const uint8_t key[32]);

/* Never fails the caller: a problem is counted and kept in last_problem. */
void tp_program_cache_store(tp_program_cache *cache, const uint8_t key[32], const void *data,
                            size_t bytes);

/* Removes the file of a binary that the driver refused. */
void tp_program_cache_reject(tp_program_cache *cache, const uint8_t key[32]);

#endif
