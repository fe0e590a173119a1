/* SPDX-License-Identifier: Apache-2.0
 * What a kind of store implements; store.c has the list. */
#ifndef TP_IO_STORE_INTERNAL_H
#define TP_IO_STORE_INTERNAL_H

#include "io/remote.h"
#include "io/store.h"

/* `options` is never NULL and has no zeros here. A NULL function: the kind cannot do that. */
typedef struct tp_store_ops {
    const char *scheme; /* "s3://" */
    tpucl_status (*stat)(const char *, const tp_store_options *, tp_store_info *);
    tpucl_status (*open_reader)(const char *, uint64_t, const tp_store_options *, tp_reader **);
    tpucl_status (*open_writer)(const char *, const tp_store_options *, tp_writer **);
    tpucl_status (*list)(const char *, const tp_store_options *, tp_arena *,
                         const tp_store_entry **, size_t *);
    tpucl_status (*remove)(const char *, const tp_store_options *);
    tpucl_status (*abort_uploads)(const char *, const tp_store_options *, size_t *);
} tp_store_ops;

extern const tp_store_ops tp_store_file, tp_store_s3, tp_store_gs, tp_store_http, tp_store_https;

/* Sorts and hands over; entries[] of `arena`. */
void tp_store_sort(tp_store_entry *entries, size_t count);

/* HEAD and range requests: the same for buckets and web servers. The reader adopts the target. */
tpucl_status tp_remote_stat(const tp_remote *remote, const tp_store_options *options,
                            tp_store_info *out_info) TPUCL_MUST_CHECK;
tpucl_status tp_remote_open_reader(tp_remote *adopted, uint64_t offset,
                                   const tp_store_options *options,
                                   tp_reader **out_reader) TPUCL_MUST_CHECK;
/* The object behind an address, or (whole_bucket) its bucket. */
tpucl_status tp_s3_open_target(const char *url, bool whole_bucket,
                               tp_remote **out_remote) TPUCL_MUST_CHECK;
tpucl_status tp_s3_abort_uploads(const char *prefix, const tp_store_options *options,
                                 size_t *out_count) TPUCL_MUST_CHECK;
/* The writer adopts the target: one PUT, or the parts of a multipart upload. */
tpucl_status tp_s3_open_writer(tp_remote *adopted, const tp_store_options *options,
                               tp_writer **out_writer) TPUCL_MUST_CHECK;

#endif
