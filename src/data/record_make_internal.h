/* SPDX-License-Identifier: Apache-2.0
 * Shared by what makes records: writing the files one after the other. */
#ifndef TP_DATA_RECORD_MAKE_INTERNAL_H
#define TP_DATA_RECORD_MAKE_INTERNAL_H

#include "core/json_write.h"
#include "core/str.h"
#include "data/record_make.h"

/* Record `at`, which lives until the next call. `at` rises; what belongs to files that are there is left out. */
typedef tpucl_status (*tp_shards_next)(void *user, int64_t at, tp_view *out_record);

/* Writes the files of `options->output` that are missing. */
tpucl_status tp_shards_write(const tp_make_options *options, const char *description,
                             int64_t records, tp_shards_next next, void *user,
                             tp_make_result *out_result) TPUCL_MUST_CHECK;

/* What of a description is about the files: records, shards, compression. */
void tp_shards_describe(tp_json_writer *writer, const tp_make_options *options, int64_t records);

#endif
