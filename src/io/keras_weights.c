/* SPDX-License-Identifier: Apache-2.0
 * The table of weights, out of files by places (Keras 3) and by names (before). */
#include <stdlib.h>
#include <string.h>
#include "core/str.h"
#include "io/keras_internal.h"

tpucl_status tp_keras_add_shard(tp_keras_file *file, tp_hdf5 *shard)
{
    const tpucl_status status = tp_keras_shards_push(&file->shards, shard);
    if (status == TPUCL_OK) return TPUCL_OK;
    tp_hdf5_close(shard);
    return status;
}

static tpucl_status add_weight(tp_keras_file *file, tp_keras_weight weight, int32_t shard,
                               const tp_hdf5_dataset *dataset)
{
    weight.path = dataset->path;
    weight.is_readable = dataset->is_readable;
    weight.dtype = dataset->dtype;
    weight.shape = dataset->shape;
    TP_TRY(tp_keras_weights_push(&file->weights, weight));
    return tp_keras_sources_push(&file->sources, (tp_keras_source){shard, dataset});
}

/* ---- by places ---- */

/* "layers/dense/vars/12": owner "layers/dense", index 12. False for other paths. */
static bool split_place(const char *path, size_t *out_owner_length, int32_t *out_index)
{
    const char *slash = strrchr(path, '/');
    int64_t index;
    if (!slash || slash - path < 4 || memcmp(slash - 4, "vars", 4) != 0) return false;
    if (slash - path > 4 && slash[-5] != '/') return false;
    if (tp_str_parse_int64(tp_view_of(slash + 1), &index) != TPUCL_OK) return false;
    if (index < 0 || index > INT32_MAX) return false;
    *out_owner_length = slash - path > 4 ? (size_t)(slash - path) - 5 : 0;
    *out_index = (int32_t)index;
    return true;
}

/* Of 2.12 and 2.13: the container of a model's layers has another name. */
static const char *modern_path(tp_arena *arena, const char *path)
{
    static const char old[] = "_layer_checkpoint_dependencies";
    const char *found = strstr(path, old);
    if (!found) return path;
    const char *rest = modern_path(arena, found + sizeof old - 1);
    return rest ? tp_arena_printf(arena, "%.*slayers%s", (int)(found - path), path, rest) : NULL;
}

static bool is_state(const char *path)
{
    return tp_str_starts_with(path, "optimizer/") || tp_str_starts_with(path, "metrics/") ||
           tp_str_starts_with(path, "_metrics/") || tp_str_starts_with(path, "compile_metrics/");
}

static tpucl_status read_places(tp_keras_file *file, int32_t shard)
{
    const tp_hdf5 *hdf5 = file->shards.items[shard];
    for (int32_t i = 0; i < tp_hdf5_dataset_count(hdf5); i++) {
        const tp_hdf5_dataset *dataset = tp_hdf5_dataset_at(hdf5, i);
        tp_keras_weight weight = {0};
        size_t owner_length;
        const char *path = modern_path(file->arena, dataset->path);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        if (is_state(path) || !split_place(path, &owner_length, &weight.index)) continue;
        weight.owner = tp_arena_strndup(file->arena, path, owner_length);
        weight.name = strrchr(path, '/') + 1;
        if (!weight.owner) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(add_weight(file, weight, shard, dataset));
    }
    return TPUCL_OK;
}

/* Names sort as text, so "10" came before "2"; and shards may share an owner. */
typedef struct sort_item {
    tp_keras_weight weight;
    tp_keras_source source;
} sort_item;

static int compare_items(const void *a, const void *b)
{
    const sort_item *x = a, *y = b;
    const int owners = strcmp(x->weight.owner, y->weight.owner);
    if (owners) return owners;
    return x->weight.index < y->weight.index ? -1 : x->weight.index > y->weight.index;
}

static tpucl_status sort_places(tp_keras_file *file)
{
    const size_t count = file->weights.count;
    sort_item *items = TP_NEW_ARRAY(sort_item, count + 1);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        items[i] = (sort_item){file->weights.items[i], file->sources.items[i]};
    qsort(items, count, sizeof *items, compare_items);
    for (size_t i = 0; i < count; i++) {
        file->weights.items[i] = items[i].weight;
        file->sources.items[i] = items[i].source;
    }
    tp_free(items);
    return TPUCL_OK;
}

/* ---- by names ---- */

static tpucl_status read_layer(tp_keras_file *file, const char *prefix, const char *layer)
{
    tp_hdf5 *hdf5 = file->shards.items[0];
    const char *const *names;
    size_t count;
    const char *group = tp_arena_printf(file->arena, "%s%s", prefix, layer);
    if (!group) return TPUCL_OUT_OF_MEMORY;
    if (!tp_hdf5_has_group(hdf5, group))
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s': layer_names has '%.100s', for which there is no group", file->name,
                       layer);
    TP_TRY(tp_hdf5_attribute_texts(hdf5, group, "weight_names", file->arena, &names, &count));
    for (size_t i = 0; names && i < count; i++) {
        const char *path = tp_arena_printf(file->arena, "%s/%s", group, names[i]);
        if (!path) return TPUCL_OUT_OF_MEMORY;
        const tp_hdf5_dataset *dataset = tp_hdf5_find_dataset(hdf5, path);
        if (!dataset)
            return TP_FAIL(TPUCL_CORRUPT_DATA,
                           "'%s': weight_names of '%.100s' has '%.100s', which is not there",
                           file->name, layer, names[i]);
        const tp_keras_weight weight = {.owner = layer, .name = names[i], .index = (int32_t)i};
        TP_TRY(add_weight(file, weight, 0, dataset));
    }
    return TPUCL_OK;
}

static tpucl_status read_names(tp_keras_file *file, const char *prefix, const char *const *layers,
                               size_t count)
{
    tp_map seen = {0};
    tpucl_status status = TPUCL_OK;
    for (size_t i = 0; i < count && status == TPUCL_OK; i++) {
        if (tp_map_find(&seen, layers[i], NULL))
            status = TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': layer_names has '%.100s' twice", file->name,
                             layers[i]);
        if (status == TPUCL_OK) status = tp_map_add(&seen, layers[i], i);
        if (status == TPUCL_OK) status = read_layer(file, prefix, layers[i]);
    }
    tp_map_deinit(&seen);
    return status;
}

/* ---- both ---- */

/* The first weight of each owner, and that indexes run from 0 without gap. */
static tpucl_status index_owners(tp_keras_file *file)
{
    const tp_keras_weight *weights = file->weights.items;
    for (size_t i = 0; i < file->weights.count; i++) {
        const bool is_first = i == 0 || strcmp(weights[i].owner, weights[i - 1].owner) != 0;
        const int32_t expected = is_first ? 0 : weights[i - 1].index + 1;
        if (weights[i].index != expected)
            return TP_FAIL(TPUCL_CORRUPT_DATA,
                           "'%s': '%.200s' is there, its weight %d before or beside it is not one",
                           file->name, weights[i].path, expected);
        if (is_first) TP_TRY(tp_map_add(&file->owners, weights[i].owner, i));
    }
    return TPUCL_OK;
}

tpucl_status tp_keras_read_weights(tp_keras_file *file)
{
    if (file->shards.count == 0) return TPUCL_OK;
    tp_hdf5 *first = file->shards.items[0];
    const char *prefix = tp_hdf5_has_group(first, "model_weights") ? "model_weights/" : "";
    const char *const *layers = NULL;
    size_t count = 0;
    TP_TRY(tp_hdf5_attribute_texts(first, *prefix ? "model_weights" : "", "layer_names",
                                   file->arena, &layers, &count));
    file->layout = layers ? TP_KERAS_NAMES : TP_KERAS_OBJECTS;
    if (layers) {
        TP_TRY(read_names(file, prefix, layers, count));
    } else {
        for (int32_t i = 0; i < (int32_t)file->shards.count; i++)
            TP_TRY(read_places(file, i));
        TP_TRY(sort_places(file));
    }
    return index_owners(file);
}

int32_t tp_keras_weight_count(const tp_keras_file *file)
{
    return (int32_t)file->weights.count;
}

const tp_keras_weight *tp_keras_weight_at(const tp_keras_file *file, int32_t index)
{
    return &file->weights.items[index];
}

int32_t tp_keras_owner_weights(const tp_keras_file *file, const char *owner, int32_t *out_first)
{
    size_t first, end;
    if (!tp_map_find(&file->owners, owner, &first)) return 0;
    for (end = first; end < file->weights.count; end++)
        if (strcmp(file->weights.items[end].owner, owner) != 0) break;
    *out_first = (int32_t)first;
    return (int32_t)(end - first);
}

tpucl_status tp_keras_read(tp_keras_file *file, const tp_keras_weight *weight, void *out_elements)
{
    const tp_keras_source *source = &file->sources.items[weight - file->weights.items];
    return tp_hdf5_read(file->shards.items[source->shard], source->dataset, out_elements);
}
