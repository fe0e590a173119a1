/* SPDX-License-Identifier: Apache-2.0
 * Finds, reads and checks checkpoints, which may be damaged or made by anybody. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/json_write.h"
#include "io/checkpoint.h"
#include "io/checkpoint_internal.h"
#include "io/store.h"

enum { MAX_MANIFEST_BYTES = 16 << 20, MAX_NAME_BYTES = 64 };
/* 2^53: what the writer of JSON keeps exact. */
#define MAX_FILE_BYTES INT64_C(9007199254740992)

struct tp_checkpoint {
    tp_arena *arena;
    const char *path;
    tp_json_document *manifest;
    int64_t step;
    const tp_json *state;
    tp_checkpoint_file files[TP_CHECKPOINT_MAX_FILES];
    tp_safetensors *parts[TP_CHECKPOINT_MAX_FILES]; /* NULL: not read */
    int32_t file_count;
};

/* ---- names ---- */

const char *tp_checkpoint_path(tp_arena *arena, const char *folder, int64_t step)
{
    const char *name = tp_arena_printf(arena, TP_CHECKPOINT_STEP_FORMAT, (long long)step);
    return name ? tp_file_join(arena, folder, name) : NULL;
}

/* -1: no name of a checkpoint. */
static int64_t step_of_name(const char *name)
{
    char again[32];
    long long step = -1;
    if (sscanf(name, "step-%12lld", &step) != 1 || step < 0) return -1;
    snprintf(again, sizeof again, TP_CHECKPOINT_STEP_FORMAT, step);
    return strcmp(again, name) == 0 ? step : -1;
}

tpucl_status tp_checkpoint_list(const char *folder, tp_arena *arena, tp_checkpoint_steps *out_steps)
{
    const char *const *names = NULL;
    size_t count = 0;
    *out_steps = (tp_checkpoint_steps){0};
    const tpucl_status status = tp_store_names(folder, arena, &names, &count);
    /* Of a bucket it means that there is no such bucket. */
    if (status == TPUCL_NOT_FOUND && !tp_store_is_remote(folder)) {
        tp_error_clear();
        return TPUCL_OK;
    }
    TP_TRY(status);
    int64_t *complete = TP_ARENA_NEW_ARRAY(arena, int64_t, count + 1);
    int64_t *incomplete = TP_ARENA_NEW_ARRAY(arena, int64_t, count + 1);
    if (!complete || !incomplete) return TPUCL_OUT_OF_MEMORY;
    *out_steps = (tp_checkpoint_steps){.complete = complete, .incomplete = incomplete};
    for (size_t i = 0; i < count; i++) { /* in byte order, so in the order of steps */
        const int64_t step = step_of_name(names[i]);
        if (step < 0) continue;
        const char *path = tp_checkpoint_path(arena, folder, step);
        const char *manifest = path ? tp_file_join(arena, path, TP_CHECKPOINT_MANIFEST) : NULL;
        if (!manifest) return TPUCL_OUT_OF_MEMORY;
        bool is_complete = false;
        TP_TRY(tp_store_exists(manifest, &is_complete));
        if (is_complete)
            complete[out_steps->complete_count++] = step;
        else
            incomplete[out_steps->incomplete_count++] = step;
    }
    return TPUCL_OK;
}

/* ---- the manifest ---- */

/* A plain name: no way out of the folder. */
static bool is_file_name(const char *name)
{
    return *name && *name != '.' && strlen(name) < MAX_NAME_BYTES && !strchr(name, '/');
}

static tpucl_status read_file_row(tp_checkpoint *checkpoint, const tp_json *row)
{
    tp_checkpoint_file *file = &checkpoint->files[checkpoint->file_count];
    const tp_json *name = NULL;
    int64_t bytes = 0, sum = 0;
    TP_TRY(tp_json_expect(row, TP_JSON_OBJECT));
    TP_TRY(tp_json_require(row, "name", TP_JSON_STRING, &name));
    TP_TRY(tp_json_get_int64(row, "bytes", 0, MAX_FILE_BYTES, &bytes));
    TP_TRY(tp_json_get_int64(row, TP_CHECKPOINT_SUM, 0, UINT32_MAX, &sum));
    if (!is_file_name(name->string)) {
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_CORRUPT_DATA, "no name of a file at %s", tp_json_where(name, where));
    }
    *file = (tp_checkpoint_file){name->string, (uint64_t)bytes, (uint32_t)sum};
    checkpoint->file_count++;
    return TPUCL_OK;
}

static tpucl_status check_manifest(const tp_checkpoint *checkpoint)
{
    const tp_json *root = tp_json_root(checkpoint->manifest);
    tp_json_writer writer = {.compact = true};
    char *text = NULL;
    int64_t wanted = -1;
    TP_TRY(tp_json_get_int64(root, TP_CHECKPOINT_SUM, 0, UINT32_MAX, &wanted));
    tp_json_begin_object(&writer);
    for (size_t i = 0; i < root->count; i++) {
        if (strcmp(root->items[i].key, TP_CHECKPOINT_SUM) == 0) continue;
        tp_json_key(&writer, root->items[i].key);
        tp_json_write_value(&writer, &root->items[i]);
    }
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, &text));
    const uint32_t sum = tp_crc32c(0, text, strlen(text));
    tp_free(text);
    if (wanted == sum) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "the manifest of '%s' is not as it was written: its checksum differs",
                   checkpoint->path);
}

static tpucl_status read_manifest(tp_checkpoint *checkpoint)
{
    const tp_json *root = tp_json_root(checkpoint->manifest), *files = NULL;
    int64_t format = 0;
    TP_TRY(tp_json_expect(root, TP_JSON_OBJECT));
    TP_TRY(tp_json_get_int64(root, "format", 1, INT32_MAX, &format));
    if (format != TP_CHECKPOINT_FORMAT)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has format %" PRId64 ", this version reads %d",
                       checkpoint->path, format, TP_CHECKPOINT_FORMAT);
    TP_TRY(check_manifest(checkpoint));
    checkpoint->step = -1;
    TP_TRY(tp_json_get_int64(root, "step", 0, TP_CHECKPOINT_MAX_STEP, &checkpoint->step));
    TP_TRY(tp_json_require(root, "files", TP_JSON_ARRAY, &files));
    TP_TRY(tp_json_require(root, "state", TP_JSON_OBJECT, &checkpoint->state));
    if (checkpoint->step < 0)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' does not say its step", checkpoint->path);
    if (files->count > TP_CHECKPOINT_MAX_FILES)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' lists %zu files, expected up to %d",
                       checkpoint->path, files->count, TP_CHECKPOINT_MAX_FILES);
    for (size_t i = 0; i < files->count; i++)
        TP_TRY(read_file_row(checkpoint, &files->items[i]));
    return TPUCL_OK;
}

static tpucl_status read_json(const char *path, tp_json_document **out_document)
{
    char *text = NULL;
    size_t length = 0;
    TP_TRY(tp_store_read(path, MAX_MANIFEST_BYTES, &text, &length));
    const tpucl_status status = tp_json_parse(text, length, path, out_document);
    tp_free(text);
    return status;
}

tpucl_status tp_checkpoint_open_manifest(const char *path, tp_checkpoint **out_checkpoint)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tp_checkpoint *checkpoint = TP_ARENA_NEW(arena, tp_checkpoint);
    const char *manifest = tp_file_join(arena, path, TP_CHECKPOINT_MANIFEST);
    if (!checkpoint || !manifest) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    checkpoint->arena = arena;
    checkpoint->path = tp_arena_strdup(arena, path);
    tpucl_status status = checkpoint->path ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = read_json(manifest, &checkpoint->manifest);
    if (status == TPUCL_OK) status = read_manifest(checkpoint);
    if (status == TPUCL_INVALID_CONFIG) /* the words of the JSON reader */
        status = tp_error_recast(TPUCL_CORRUPT_DATA);
    if (status != TPUCL_OK) {
        tp_checkpoint_close(checkpoint);
        return status;
    }
    *out_checkpoint = checkpoint;
    return TPUCL_OK;
}

/* ---- the parts ---- */

static tpucl_status read_part(tp_checkpoint *checkpoint, int32_t index)
{
    const tp_checkpoint_file *file = &checkpoint->files[index];
    const char *path = tp_file_join(checkpoint->arena, checkpoint->path, file->name);
    char *bytes = NULL;
    size_t length = 0;
    uint64_t found = 0;
    if (!path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_size(path, &found));
    if (found != file->bytes)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %" PRIu64 " bytes, its manifest says %" PRIu64,
                       path, found, file->bytes);
    TP_TRY(tp_store_read(path, found, &bytes, &length));
    const uint32_t sum = tp_crc32c(0, bytes, length);
    if (sum != file->crc32c) {
        tp_free(bytes);
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' has the checksum %08" PRIx32 ", its manifest says %08" PRIx32, path,
                       sum, file->crc32c);
    }
    return tp_safetensors_adopt(bytes, length, path, &checkpoint->parts[index]);
}

tpucl_status tp_checkpoint_open(const char *path, tp_checkpoint **out_checkpoint)
{
    tp_checkpoint *checkpoint = NULL;
    TP_TRY(tp_checkpoint_open_manifest(path, &checkpoint));
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; status == TPUCL_OK && i < checkpoint->file_count; i++)
        status = read_part(checkpoint, i);
    if (status != TPUCL_OK) {
        tp_checkpoint_close(checkpoint);
        return status;
    }
    *out_checkpoint = checkpoint;
    return TPUCL_OK;
}

/* Damage is passed over; what has nothing to do with this one checkpoint is not. */
static bool is_damage(tpucl_status status)
{
    return status == TPUCL_NOT_FOUND || status == TPUCL_CORRUPT_DATA ||
           status == TPUCL_UNSUPPORTED || status == TPUCL_IO_ERROR;
}

tpucl_status tp_checkpoint_open_newest(const char *folder, tp_problems *skipped,
                                       tp_checkpoint **out_checkpoint)
{
    tp_arena *arena = NULL;
    tp_checkpoint_steps steps;
    *out_checkpoint = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = tp_checkpoint_list(folder, arena, &steps);
    size_t complete = steps.complete_count, incomplete = steps.incomplete_count;
    while (status == TPUCL_OK && !*out_checkpoint && complete + incomplete > 0) {
        const bool is_complete =
            incomplete == 0 ||
            (complete > 0 && steps.complete[complete - 1] > steps.incomplete[incomplete - 1]);
        if (!is_complete) {
            tp_problems_add(skipped, "'%s' was not finished",
                            tp_checkpoint_path(arena, folder, steps.incomplete[--incomplete]));
            continue;
        }
        const char *path = tp_checkpoint_path(arena, folder, steps.complete[--complete]);
        status = path ? tp_checkpoint_open(path, out_checkpoint) : TPUCL_OUT_OF_MEMORY;
        if (!is_damage(status)) continue;
        tp_problems_add_failed(skipped, status);
        tp_error_clear();
        status = TPUCL_OK;
    }
    tp_arena_destroy(arena);
    TP_TRY(status);
    if (!*out_checkpoint)
        return TP_FAIL(TPUCL_NOT_FOUND, "'%s' holds no complete checkpoint", folder);
    return TPUCL_OK;
}

void tp_checkpoint_close(tp_checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (int32_t i = 0; i < checkpoint->file_count; i++)
        tp_safetensors_close(checkpoint->parts[i]);
    tp_json_destroy(checkpoint->manifest);
    tp_arena_destroy(checkpoint->arena);
}

/* ---- what is in it ---- */

const char *tp_checkpoint_name(const tp_checkpoint *checkpoint)
{
    return checkpoint->path;
}

int64_t tp_checkpoint_step(const tp_checkpoint *checkpoint)
{
    return checkpoint->step;
}

const tp_json *tp_checkpoint_state(const tp_checkpoint *checkpoint)
{
    return checkpoint->state;
}

const tp_safetensors *tp_checkpoint_find_part(const tp_checkpoint *checkpoint, const char *name)
{
    const size_t length = strlen(name);
    for (int32_t i = 0; i < checkpoint->file_count; i++) {
        const char *file = checkpoint->files[i].name;
        if (strncmp(file, name, length) == 0 && strcmp(file + length, TP_CHECKPOINT_SUFFIX) == 0)
            return checkpoint->parts[i];
    }
    return NULL;
}

int32_t tp_checkpoint_file_count(const tp_checkpoint *checkpoint)
{
    return checkpoint->file_count;
}

const tp_checkpoint_file *tp_checkpoint_file_at(const tp_checkpoint *checkpoint, int32_t index)
{
    return &checkpoint->files[index];
}
