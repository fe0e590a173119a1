/* SPDX-License-Identifier: Apache-2.0
 * Writes and removes checkpoints. */
#include <stdio.h>
#include <string.h>
#include <tpucl/version.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/json_write.h"
#include "io/checkpoint.h"
#include "io/checkpoint_internal.h"
#include "io/store.h"

/* ---- a stream that adds up what goes through it ---- */

typedef struct summing_writer {
    tp_writer base;
    tp_writer *inner;
    uint32_t crc32c;
} summing_writer;

static tpucl_status write_summed(tp_writer *writer, const void *bytes, size_t length)
{
    summing_writer *summing = (summing_writer *)writer;
    summing->crc32c = tp_crc32c(summing->crc32c, bytes, length);
    return tp_writer_write(summing->inner, bytes, length);
}

/* ---- parts and manifest ---- */

static tpucl_status write_part(const char *folder, const tp_checkpoint_part *part, tp_arena *arena,
                               tp_checkpoint_file *out_file)
{
    static const tp_writer_ops ops = {.write = write_summed};
    const char *name = tp_arena_printf(arena, "%s" TP_CHECKPOINT_SUFFIX, part->name);
    const char *path = name ? tp_file_join(arena, folder, name) : NULL;
    if (!path) return TPUCL_OUT_OF_MEMORY;
    summing_writer summing = {.base = {.ops = &ops, .name = path}};
    TP_TRY(tp_store_create(path, &summing.inner));
    tpucl_status status =
        tp_safetensors_write_to(&summing.base, part->entries, part->count, NULL, NULL, 0);
    if (status != TPUCL_OK) {
        tp_writer_abort(summing.inner);
        return status;
    }
    *out_file = (tp_checkpoint_file){name, summing.base.offset, summing.crc32c};
    return tp_writer_commit(summing.inner);
}

typedef struct manifest {
    int64_t step;
    const tp_checkpoint_file *files;
    int32_t file_count;
    const tp_json *state;
} manifest;

static void put_members(tp_json_writer *writer, const manifest *m)
{
    tp_json_put_int(writer, "format", TP_CHECKPOINT_FORMAT);
    tp_json_put_string(writer, "version", tpucl_version_string());
    tp_json_put_int(writer, "contract", TPUCL_CONTRACT_VERSION);
    tp_json_put_int(writer, "step", m->step);
    tp_json_key(writer, "files");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < m->file_count; i++) {
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", m->files[i].name);
        tp_json_key(writer, "bytes");
        tp_json_write_uint(writer, m->files[i].bytes);
        tp_json_put_int(writer, TP_CHECKPOINT_SUM, m->files[i].crc32c);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_key(writer, "state");
    tp_json_write_value(writer, m->state);
}

static tpucl_status write_manifest(const char *path, const manifest *m)
{
    tp_json_writer compact = {.compact = true}, writer = {0};
    char *text = NULL;
    tp_json_begin_object(&compact);
    put_members(&compact, m);
    tp_json_end_object(&compact);
    TP_TRY(tp_json_writer_finish(&compact, &text));
    tp_json_begin_object(&writer);
    put_members(&writer, m);
    tp_json_put_int(&writer, TP_CHECKPOINT_SUM, tp_crc32c(0, text, strlen(text)));
    tp_json_end_object(&writer);
    tp_free(text);
    TP_TRY(tp_json_writer_finish(&writer, &text));
    const tpucl_status status = tp_store_write(path, text, strlen(text));
    tp_free(text);
    return status;
}

static tpucl_status write_all(const char *path, int64_t step, const tp_checkpoint_part *parts,
                              int32_t part_count, const tp_json *state, tp_arena *arena)
{
    tp_checkpoint_file files[TP_CHECKPOINT_MAX_FILES];
    const char *path_of_manifest = tp_file_join(arena, path, TP_CHECKPOINT_MANIFEST);
    if (!path_of_manifest) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_make_folder(path));
    /* Of one that is replaced: from here on it is incomplete. */
    TP_TRY(tp_store_remove(path_of_manifest, NULL));
    for (int32_t i = 0; i < part_count; i++)
        TP_TRY(write_part(path, &parts[i], arena, &files[i]));
    return write_manifest(path_of_manifest, &(manifest){step, files, part_count, state});
}

tpucl_status tp_checkpoint_write(const char *folder, int64_t step, const tp_checkpoint_part *parts,
                                 int32_t part_count, const char *state)
{
    tp_arena *arena = NULL;
    tp_json_document *document = NULL;
    tpucl_status status;
    if (step < 0 || step > TP_CHECKPOINT_MAX_STEP)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "step %lld of a checkpoint, expected 0 to %lld",
                       (long long)step, (long long)TP_CHECKPOINT_MAX_STEP);
    if (part_count < 0 || part_count > TP_CHECKPOINT_MAX_FILES)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d parts of a checkpoint, expected up to %d",
                       part_count, TP_CHECKPOINT_MAX_FILES);
    TP_TRY(tp_arena_create(0, &arena));
    const char *path = tp_checkpoint_path(arena, folder, step);
    TP_TRY_GOTO(status, path ? TPUCL_OK : TPUCL_OUT_OF_MEMORY, done);
    TP_TRY_GOTO(status, tp_json_parse(state, strlen(state), "state of a checkpoint", &document),
                done);
    status = write_all(path, step, parts, part_count, tp_json_root(document), arena);
done:
    tp_json_destroy(document);
    tp_arena_destroy(arena);
    return status;
}

/* ---- removing ---- */

static tpucl_status remove_all(const char *path, tp_arena *arena)
{
    const char *const *names = NULL;
    size_t count = 0;
    const char *file = tp_file_join(arena, path, TP_CHECKPOINT_MANIFEST);
    if (!file) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_store_remove(file, NULL));
    TP_TRY(tp_store_names(path, arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        file = tp_file_join(arena, path, names[i]);
        if (!file) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_store_remove(file, NULL));
    }
    return tp_store_remove_folder(path);
}

tpucl_status tp_checkpoint_remove(const char *folder, int64_t step)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    const char *path = tp_checkpoint_path(arena, folder, step);
    tpucl_status status = path ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    const bool may_be_there =
        path && (tp_store_is_remote(path) || tp_file_is_folder(tp_store_path(path)));
    if (may_be_there) status = remove_all(path, arena);
    tp_arena_destroy(arena);
    return status;
}
