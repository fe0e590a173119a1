/* SPDX-License-Identifier: Apache-2.0
 * Where objects live: local files (a path or file://), buckets (s3://bucket/key, gs://bucket/key), and web servers
 * (http://, https://, to read only). docs/stores.md has addresses, credentials and limits.
 *
 * Keys are bytes as they stand behind the bucket, not percent-encoded; http addresses are used as they are.
 * Readers and writers are streams (io/stream.h). Requests are repeated as long as that may help
 * (io/remote.h). Errors name the address, what was tried and the server's words, never a secret. Thread-safe.
 */
#ifndef TP_IO_STORE_H
#define TP_IO_STORE_H

#include "core/arena.h"
#include "io/stream.h"

/* Zero is the default of each; NULL instead of the struct is all defaults. */
typedef struct tp_store_options {
    size_t block_bytes; /* of one range request; 8 MiB */
    int32_t blocks;     /* in memory at once, one of them being read; 4 */
    size_t
        part_bytes; /* of a multipart upload, 5 MiB at least; smaller objects are one request; 16 MiB */
    int32_t page_count;      /* keys of one answer of a list; 1000 */
    uint64_t retry_ns;       /* of all tries of one request; TPUCL_STORE_RETRY, 120 s */
    uint64_t first_pause_ns; /* longest pause before the second try; doubles up to 32 s; 0.5 s */
} tp_store_options;

typedef struct tp_store_info {
    bool exists;
    uint64_t bytes;
    char etag[128]; /* "" where the store has none */
} tp_store_info;

typedef struct tp_store_entry {
    const char *url;
    uint64_t bytes;
} tp_store_entry;

/* What does not exist is no failure: exists is false. */
tpucl_status tp_store_stat(const char *url, const tp_store_options *options,
                           tp_store_info *out_info) TPUCL_MUST_CHECK;
/* From byte `offset` on, which may be the end. The object of the opening is read: if it is replaced meanwhile, reading
 * fails with TPUCL_CORRUPT_DATA. Reads ahead on threads of its own: `blocks` * `block_bytes` of memory. */
tpucl_status tp_store_open_reader(const char *url, uint64_t offset, const tp_store_options *options,
                                  tp_reader **out_reader) TPUCL_MUST_CHECK;
/* The object is visible when commit has returned TPUCL_OK; folders of local files are made. Memory: one part. */
tpucl_status tp_store_open_writer(const char *url, const tp_store_options *options,
                                  tp_writer **out_writer) TPUCL_MUST_CHECK;
/* All objects whose address begins with `prefix`, in byte order, in `arena`. */
tpucl_status tp_store_list(const char *prefix, const tp_store_options *options, tp_arena *arena,
                           const tp_store_entry **out_entries, size_t *out_count) TPUCL_MUST_CHECK;
/* What does not exist is fine. */
tpucl_status tp_store_remove(const char *url, const tp_store_options *options) TPUCL_MUST_CHECK;
/* "s3://b/a" and "c" give "s3://b/a/c"; a `name` with a scheme or a leading '/' stands alone. NULL when memory
 * fails. */
char *tp_store_join(tp_arena *arena, const char *folder, const char *name);

/* ---- whole objects, and folders ---- */
/* For what works on local files and on buckets alike. Local files keep the meaning and the words of core/file.h; a
 * "folder" of a bucket is what its keys have in common up to a '/', so that it is there as soon as something is in it. */

/* Has a scheme that is no local file's. */
bool tp_store_is_remote(const char *url);
/* The path of a local address: without file://. Borrowed. */
const char *tp_store_path(const char *url);
/* With a zero behind the last byte, for tp_free; `out_length` may be NULL. TPUCL_NOT_FOUND, and
 * TPUCL_INVALID_ARGUMENT for more than `max_bytes`. */
tpucl_status tp_store_read(const char *url, uint64_t max_bytes, char **out_bytes,
                           size_t *out_length) TPUCL_MUST_CHECK;
/* As tp_store_open_writer, but makes no local folder. */
tpucl_status tp_store_create(const char *url, tp_writer **out_writer) TPUCL_MUST_CHECK;
/* Replaces the object at once. */
tpucl_status tp_store_write(const char *url, const void *bytes, size_t length) TPUCL_MUST_CHECK;
/* TPUCL_NOT_FOUND when there is none. */
tpucl_status tp_store_size(const char *url, uint64_t *out_bytes) TPUCL_MUST_CHECK;
/* Anything for local paths, an object for others. */
tpucl_status tp_store_exists(const char *url, bool *out_exists) TPUCL_MUST_CHECK;
/* Nothing to do in a bucket. */
tpucl_status tp_store_make_folder(const char *url) TPUCL_MUST_CHECK;
tpucl_status tp_store_remove_folder(const char *url) TPUCL_MUST_CHECK;
/* Names of objects and folders in a folder, in byte order, in `arena`. TPUCL_NOT_FOUND for a local folder that does not
 * exist; nothing in one of a bucket. */
tpucl_status tp_store_names(const char *folder, tp_arena *arena, const char *const **out_names,
                            size_t *out_count) TPUCL_MUST_CHECK;
/* Gives up multipart uploads that nobody will complete, as those of a process that was killed: of all keys that begin
 * with `prefix`. Only for prefixes with one writer at a time. Local files have none. */
tpucl_status tp_store_abort_uploads(const char *prefix, const tp_store_options *options,
                                    size_t *out_count) TPUCL_MUST_CHECK;

#endif
