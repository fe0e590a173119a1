/* SPDX-License-Identifier: Apache-2.0
 * Records in several files: "train-00000-of-00008" and so on, each written aside and renamed when it is complete, so
 * that work which was stopped goes on with the first file that is missing.
 *
 * What the files are made of is written down first, in "train.records.json": they are only gone on with, or
 * replaced, by work of the same description. Thread-compatible. */
#ifndef TP_DATA_RECORD_SHARDS_H
#define TP_DATA_RECORD_SHARDS_H

#include "core/arena.h"
#include "io/tfrecord.h"

enum { TP_SHARDS_MAX = 99999 };

typedef struct tp_record_shards {
    const char *prefix; /* path and first word of the names, borrowed */
    int32_t count;
    tp_compression compression;
    int64_t records; /* in all; shard s holds those from begin(s) to begin(s + 1) */
} tp_record_shards;

int64_t tp_record_shards_begin(const tp_record_shards *shards, int32_t shard);
/* NULL when memory fails. */
const char *tp_record_shards_path(const tp_record_shards *shards, int32_t shard, tp_arena *arena);

/* Makes folders; compares `description` with what is there. TPUCL_INVALID_ARGUMENT when files of these names are of
 * another description, or of none, and `force` is false; with it they are removed. */
tpucl_status tp_record_shards_begin_work(const tp_record_shards *shards, const char *description,
                                         bool force) TPUCL_MUST_CHECK;
/* A complete file of that name is there. */
tpucl_status tp_record_shards_has(const tp_record_shards *shards, int32_t shard, tp_arena *arena,
                                  bool *out_has) TPUCL_MUST_CHECK;
tpucl_status tp_record_shards_open(const tp_record_shards *shards, int32_t shard, tp_arena *arena,
                                   tp_record_writer **out_writer) TPUCL_MUST_CHECK;

/* ---- names to read ---- */

/* Files that `paths` stand for, in order: a pattern's ("train-*"), a folder's shards and *.tfrecord(s), or the file
 * itself; the same in buckets, by listing them. TPUCL_NOT_FOUND when one stands for none. */
tpucl_status tp_record_paths_expand(const char *const *paths, int32_t count, tp_arena *arena,
                                    const char *const **out_paths,
                                    int32_t *out_count) TPUCL_MUST_CHECK;

#endif
