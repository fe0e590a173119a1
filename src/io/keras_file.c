/* SPDX-License-Identifier: Apache-2.0
 * Opening Keras' files: which kind it is, and its configuration. */
#include "io/keras_file.h"

#include <stdio.h>
#include <string.h>
#include "core/file.h"
#include "core/str.h"
#include "io/keras_internal.h"
#include "io/zip.h"

static const char config_name[] = "config.json", metadata_name[] = "metadata.json",
                  weights_name[] = "model.weights.h5";

/* Malformed JSON is TPUCL_INVALID_CONFIG everywhere; inside a model file it is the file that is broken, most
 * often because a number is NaN or Infinity, which Python writes though JSON has none. */
static tpucl_status parse(const char *text, size_t length, const char *name,
                          tp_json_document **out_document)
{
    if (length > TP_KERAS_MAX_JSON_BYTES)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %zu bytes of JSON, expected at most 64 MiB",
                       name, length);
    return tp_json_parse(text, length, name, out_document);
}

static tpucl_status set_version(tp_keras_file *file, const char *text)
{
    file->version = tp_arena_strdup(file->arena, text ? text : "");
    return file->version ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* ---- .keras ---- */

static tpucl_status read_zip_json(tp_keras_file *file, tp_zip *zip, const tp_zip_entry *entry,
                                  tp_json_document **out_document)
{
    char *text, name[512];
    size_t length;
    TP_TRY(tp_zip_read(zip, entry, TP_KERAS_MAX_JSON_BYTES, &text, &length));
    snprintf(name, sizeof name, "%.400s: %s", file->name, entry->name);
    const tpucl_status status = parse(text, length, name, out_document);
    tp_free(text);
    return status;
}

static tpucl_status read_metadata(tp_keras_file *file, const tp_json_document *document)
{
    const char *version = "";
    TP_TRY(tp_json_get_string(tp_json_root(document), "keras_version", &version));
    return set_version(file, version);
}

static tpucl_status read_zip_weights(tp_keras_file *file, tp_zip *zip)
{
    tp_hdf5 *shard;
    char *bytes;
    size_t length;
    const tp_zip_entry *entry = tp_zip_find(zip, weights_name);
    if (!entry) {
        if (!tp_zip_find(zip, "model.weights.npz") && !tp_zip_find(zip, "model.weights.json"))
            return TPUCL_OK;
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "'%s' keeps its weights as .npz or in shards, which is not read inside an "
                       "archive; save it with model.weights.h5, or save the weights beside it",
                       file->name);
    }
    TP_TRY(tp_zip_read(zip, entry, TP_ZIP_MAX_TOTAL_BYTES, &bytes, &length));
    const tpucl_status status = tp_hdf5_open_bytes(bytes, length, file->name, &shard);
    tp_free(bytes);
    TP_TRY(status);
    return tp_keras_add_shard(file, shard);
}

static tpucl_status read_zip(tp_keras_file *file, tp_zip *zip, bool with_weights)
{
    tp_json_document *metadata = NULL;
    const tp_zip_entry *config = tp_zip_find(zip, config_name);
    if (!config)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' is a zip archive without config.json, so no Keras model", file->name);
    if (!file->config) TP_TRY(read_zip_json(file, zip, config, &file->config));
    if (tp_zip_find(zip, metadata_name)) {
        TP_TRY(read_zip_json(file, zip, tp_zip_find(zip, metadata_name), &metadata));
        const tpucl_status status = read_metadata(file, metadata);
        tp_json_destroy(metadata);
        if (status != TPUCL_OK) return status;
    }
    return with_weights ? read_zip_weights(file, zip) : TPUCL_OK;
}

/* ---- .h5 ---- */

static tpucl_status read_hdf5_config(tp_keras_file *file, tp_hdf5 *hdf5)
{
    const char *text = NULL, *training = NULL, *version = NULL;
    TP_TRY(tp_hdf5_attribute_text(hdf5, "", "model_config", file->arena, &text));
    TP_TRY(tp_hdf5_attribute_text(hdf5, "", "training_config", file->arena, &training));
    TP_TRY(tp_hdf5_attribute_text(hdf5, "", "keras_version", file->arena, &version));
    TP_TRY(set_version(file, version));
    if (!text) return TPUCL_OK;
    TP_TRY(parse(text, strlen(text), file->name, &file->config));
    if (training) TP_TRY(parse(training, strlen(training), file->name, &file->training));
    return TPUCL_OK;
}

/* Takes over `shard`. */
static tpucl_status add_hdf5(tp_keras_file *file, tp_hdf5 *shard)
{
    TP_TRY(tp_keras_add_shard(file, shard));
    return file->config ? TPUCL_OK : read_hdf5_config(file, shard);
}

/* ---- JSON: a configuration, or a list of shards ---- */

static tpucl_status add_shard_file(tp_keras_file *file, const char *folder, const tp_json *name)
{
    tp_hdf5 *shard;
    const char *text;
    TP_TRY(tp_json_as_string(name, &text));
    if (strchr(text, '/') || strchr(text, '\\') || *text == '.' || !*text)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' names the shard '%.100s', expected a file in the same folder",
                       file->name, text);
    const char *path = tp_file_join(file->arena, folder, text);
    if (!path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_hdf5_open(path, &shard));
    return tp_keras_add_shard(file, shard);
}

/* Every file that the map names, once. */
static tpucl_status read_shard_map(tp_keras_file *file, const char *path, const tp_json *weight_map)
{
    tp_map seen = {0};
    tpucl_status status = TPUCL_OK;
    const char *base = tp_file_base_name(path);
    const char *folder =
        base > path ? tp_arena_strndup(file->arena, path, (size_t)(base - path)) : ".";
    if (!folder) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < weight_map->count && status == TPUCL_OK; i++) {
        const tp_json *value = &weight_map->items[i];
        const size_t count = value->kind == TP_JSON_ARRAY ? value->count : 1;
        for (size_t k = 0; k < count && status == TPUCL_OK; k++) {
            const tp_json *name = value->kind == TP_JSON_ARRAY ? &value->items[k] : value;
            status = tp_json_expect(name, TP_JSON_STRING);
            if (status != TPUCL_OK || tp_map_find(&seen, name->string, NULL)) continue;
            if (seen.count >= TP_KERAS_MAX_SHARDS)
                status = TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' names more than %d shards", file->name,
                                 TP_KERAS_MAX_SHARDS);
            if (status == TPUCL_OK) status = tp_map_add(&seen, name->string, 0);
            if (status == TPUCL_OK) status = add_shard_file(file, folder, name);
        }
    }
    tp_map_deinit(&seen);
    return status;
}

static tpucl_status read_json(tp_keras_file *file, const char *path)
{
    tp_json_document *document;
    TP_TRY(tp_json_read_file(path, TP_KERAS_MAX_JSON_BYTES, &document));
    const tp_json *root = tp_json_root(document);
    const tp_json *weight_map = tp_json_member(root, "weight_map");
    tpucl_status status = TPUCL_OK;
    if (weight_map) {
        status = tp_json_expect(weight_map, TP_JSON_OBJECT);
        if (status == TPUCL_OK) status = read_shard_map(file, path, weight_map);
        tp_json_destroy(document);
        return status;
    }
    if (file->config || !tp_json_member(root, "class_name")) {
        tp_json_destroy(document);
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "'%s' is JSON, but no configuration that Keras wrote: expected 'class_name' "
                       "(to_json) or 'weight_map' (sharded weights)",
                       path);
    }
    file->config = document;
    const char *version = "";
    TP_TRY(tp_json_get_string(root, "keras_version", &version));
    return set_version(file, version);
}

/* ---- any ---- */

static tpucl_status open_hdf5_path(tp_keras_file *file, const char *path)
{
    tp_hdf5 *shard;
    TP_TRY(tp_hdf5_open(path, &shard));
    return add_hdf5(file, shard);
}

static tpucl_status read_folder(tp_keras_file *file, const char *path, bool with_weights)
{
    const char *config = tp_file_join(file->arena, path, config_name);
    const char *metadata = tp_file_join(file->arena, path, metadata_name);
    const char *weights = tp_file_join(file->arena, path, weights_name);
    if (!config || !metadata || !weights) return TPUCL_OUT_OF_MEMORY;
    if (!file->config) TP_TRY(read_json(file, config));
    if (tp_file_exists(metadata)) {
        tp_json_document *document;
        TP_TRY(tp_json_read_file(metadata, TP_KERAS_MAX_JSON_BYTES, &document));
        const tpucl_status status = read_metadata(file, document);
        tp_json_destroy(document);
        if (status != TPUCL_OK) return status;
    }
    return with_weights && tp_file_exists(weights) ? open_hdf5_path(file, weights) : TPUCL_OK;
}

typedef enum content { CONTENT_ZIP, CONTENT_HDF5, CONTENT_JSON, CONTENT_OTHER } content;

/* By the first bytes: local file header of a zip, signature of HDF5 (HDF5 specification, II.A), a brace. */
static content content_of(const char *bytes, size_t length)
{
    static const char zip[] = {'P', 'K', 3, 4},
                      hdf5[] = {'\x89', 'H', 'D', 'F', '\r', '\n', 26, '\n'};
    if (length >= sizeof zip && memcmp(bytes, zip, sizeof zip) == 0) return CONTENT_ZIP;
    if (length >= sizeof hdf5 && memcmp(bytes, hdf5, sizeof hdf5) == 0) return CONTENT_HDF5;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '{') return CONTENT_JSON;
        if (!strchr(" \t\r\n", bytes[i]) || !bytes[i]) break;
    }
    return CONTENT_OTHER;
}

static tpucl_status fail_kind(const char *path)
{
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "'%s' is no file of Keras: expected .keras (a zip archive), .h5 (HDF5) or JSON",
                   path);
}

static tpucl_status read_path(tp_keras_file *file, const char *path, bool with_weights)
{
    char head[64];
    tp_zip *zip;
    if (tp_file_is_folder(path)) return read_folder(file, path, with_weights);
    uint64_t bytes;
    TP_TRY(tp_file_size(path, &bytes));
    FILE *stream = fopen(path, "rb");
    if (!stream) return TP_FAIL(TPUCL_IO_ERROR, "'%s' cannot be opened", path);
    const size_t length = fread(head, 1, sizeof head, stream);
    fclose(stream);
    switch (content_of(head, length)) {
    case CONTENT_ZIP: {
        TP_TRY(tp_zip_open(path, &zip));
        const tpucl_status status = read_zip(file, zip, with_weights);
        tp_zip_close(zip);
        return status;
    }
    case CONTENT_HDF5:
        return open_hdf5_path(file, path);
    case CONTENT_JSON:
        return read_json(file, path);
    default:
        return fail_kind(path);
    }
}

static tpucl_status make(const char *name, tp_keras_file **out_file)
{
    tp_keras_file *file = TP_NEW(tp_keras_file);
    if (!file) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_arena_create(0, &file->arena);
    if (status == TPUCL_OK) {
        file->version = "";
        file->name = tp_arena_strdup(file->arena, name);
        if (!file->name) status = TPUCL_OUT_OF_MEMORY;
    }
    if (status != TPUCL_OK) {
        tp_keras_close(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

static void drop_shards(tp_keras_file *file)
{
    for (size_t i = 0; i < file->shards.count; i++)
        tp_hdf5_close(file->shards.items[i]);
    file->shards.count = 0;
}

static tpucl_status read_both(tp_keras_file *file, const char *path, const char *weights_path)
{
    TP_TRY(read_path(file, path, !weights_path));
    if (weights_path) {
        drop_shards(file); /* a .h5 was opened for its configuration alone */
        TP_TRY(read_path(file, weights_path, true));
    }
    return tp_keras_read_weights(file);
}

tpucl_status tp_keras_open(const char *path, const char *weights_path, tp_keras_file **out_file)
{
    tp_keras_file *file;
    TP_TRY(make(path, &file));
    const tpucl_status status = read_both(file, path, weights_path);
    if (status != TPUCL_OK) {
        tp_keras_close(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

static tpucl_status read_bytes(tp_keras_file *file, const void *bytes, size_t length)
{
    const content kind = content_of(bytes, length);
    if (kind == CONTENT_ZIP) {
        tp_zip *zip;
        TP_TRY(tp_zip_open_bytes(bytes, length, file->name, &zip));
        const tpucl_status status = read_zip(file, zip, true);
        tp_zip_close(zip);
        TP_TRY(status);
    } else if (kind == CONTENT_HDF5) {
        tp_hdf5 *shard;
        TP_TRY(tp_hdf5_open_bytes(bytes, length, file->name, &shard));
        TP_TRY(add_hdf5(file, shard));
    } else {
        return fail_kind(file->name);
    }
    return tp_keras_read_weights(file);
}

tpucl_status tp_keras_open_bytes(const void *bytes, size_t length, const char *name,
                                 tp_keras_file **out_file)
{
    tp_keras_file *file;
    TP_TRY(make(name, &file));
    const tpucl_status status = read_bytes(file, bytes, length);
    if (status != TPUCL_OK) {
        tp_keras_close(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

void tp_keras_close(tp_keras_file *file)
{
    if (!file) return;
    drop_shards(file);
    tp_keras_shards_deinit(&file->shards);
    tp_keras_weights_deinit(&file->weights);
    tp_keras_sources_deinit(&file->sources);
    tp_map_deinit(&file->owners);
    tp_json_destroy(file->config);
    tp_json_destroy(file->training);
    tp_arena_destroy(file->arena);
    tp_free(file);
}

const tp_json *tp_keras_config(const tp_keras_file *file)
{
    return file->config ? tp_json_root(file->config) : NULL;
}

const tp_json *tp_keras_compile_config(const tp_keras_file *file)
{
    if (file->training) return tp_json_root(file->training);
    const tp_json *compile =
        file->config ? tp_json_member(tp_json_root(file->config), "compile_config") : NULL;
    return compile && compile->kind == TP_JSON_OBJECT ? compile : NULL;
}

const char *tp_keras_version(const tp_keras_file *file)
{
    return file->version;
}

tp_keras_layout tp_keras_weight_layout(const tp_keras_file *file)
{
    return file->layout;
}
