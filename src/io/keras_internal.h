/* SPDX-License-Identifier: Apache-2.0
 * What tp_keras_file holds; shared by io/keras_*.c only.
 */
#ifndef TP_IO_KERAS_INTERNAL_H
#define TP_IO_KERAS_INTERNAL_H

#include "core/array.h"
#include "core/map.h"
#include "io/hdf5.h"
#include "io/keras_file.h"

enum { TP_KERAS_MAX_JSON_BYTES = 64 << 20, TP_KERAS_MAX_SHARDS = 1000 };

/* A weight and where its elements are. */
typedef struct tp_keras_source {
    int32_t shard;
    const tp_hdf5_dataset *dataset;
} tp_keras_source;

TP_ARRAY_DEFINE(tp_keras_weights, tp_keras_weight)
TP_ARRAY_DEFINE(tp_keras_sources, tp_keras_source)

TP_ARRAY_DEFINE(tp_keras_shards, tp_hdf5 *)

struct tp_keras_file {
    tp_arena *arena;
    const char *name;
    tp_json_document *config, *training; /* training: the legacy form only */
    const char *version;
    tp_keras_layout layout;
    tp_keras_shards shards;
    tp_keras_weights weights; /* one source each */
    tp_keras_sources sources;
    tp_map owners; /* place of the first weight */
};

/* Adds a file of weights, which it owns from now on, also when this fails. In keras_weights.c. */
tpucl_status tp_keras_add_shard(tp_keras_file *file, tp_hdf5 *shard) TPUCL_MUST_CHECK;
/* Fills the table out of all shards. */
tpucl_status tp_keras_read_weights(tp_keras_file *file) TPUCL_MUST_CHECK;

#endif
