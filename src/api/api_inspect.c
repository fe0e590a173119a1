/* SPDX-License-Identifier: Apache-2.0
 * What is in a file: each kind has a function that makes rows of it. */
#include <stdio.h>
#include <string.h>
#include <tpucl/inspect.h>
#include "api/handles.h"
#include "core/alloc.h"
#include "core/array.h"
#include "core/file.h"
#include "io/checkpoint.h"
#include "io/event_scan.h"
#include "io/keras_file.h"

TP_ARRAY_DEFINE(inspection_rows, tpucl_inspection_row)

struct tpucl_inspection {
    tp_arena *arena;
    const char *path, *kind, *summary;
    inspection_rows rows;
    int32_t faults;
};

static tpucl_status add_row(tpucl_inspection *out, tpucl_inspection_row row)
{
    if (!row.name || !row.type || !row.note) return TPUCL_OUT_OF_MEMORY;
    if (row.is_bad) out->faults++;
    return inspection_rows_push(&out->rows, row);
}

/* "f32[784,128]" */
static const char *type_of(tp_arena *arena, tp_dtype dtype, const tp_shape *shape)
{
    char text[256];
    tp_shape_format(shape, text, sizeof text);
    return tp_arena_printf(arena, "%s%s", tp_dtype_name(dtype), text);
}

static tpucl_status add_tensors(tpucl_inspection *out, const tp_safetensors *file, const char *part,
                                uint64_t *inout_bytes)
{
    for (int32_t i = 0; i < tp_safetensors_count(file); i++) {
        const tp_tensor_entry *entry = tp_safetensors_entry(file, i);
        *inout_bytes += entry->bytes;
        TP_TRY(add_row(
            out, (tpucl_inspection_row){.name = tp_arena_strdup(out->arena, entry->name),
                                        .type = type_of(out->arena, entry->dtype, &entry->shape),
                                        .bytes = entry->bytes,
                                        .note = tp_arena_strdup(out->arena, part)}));
    }
    return TPUCL_OK;
}

static tpucl_status summarise(tpucl_inspection *out, const char *kind, const char *what,
                              uint64_t bytes)
{
    out->kind = kind;
    out->summary = tp_arena_printf(out->arena, "%zu %s%s, %.1f MB", out->rows.count, what,
                                   out->rows.count == 1 ? "" : "s", 1e-6 * (double)bytes);
    return out->summary ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status inspect_safetensors(tpucl_inspection *out)
{
    tp_safetensors *file = NULL;
    uint64_t bytes = 0;
    TP_TRY(tp_safetensors_open(out->path, &file));
    const tpucl_status status = add_tensors(out, file, "", &bytes);
    tp_safetensors_close(file);
    TP_TRY(status);
    return summarise(out, "safetensors", "tensor", bytes);
}

static tpucl_status inspect_keras(tpucl_inspection *out)
{
    tp_keras_file *file = NULL;
    uint64_t bytes = 0;
    TP_TRY(tp_keras_open(out->path, NULL, &file));
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; status == TPUCL_OK && i < tp_keras_weight_count(file); i++) {
        const tp_keras_weight *weight = tp_keras_weight_at(file, i);
        tpucl_inspection_row row = {
            .name = tp_arena_strdup(out->arena, weight->path), .type = "", .note = ""};
        if (weight->is_readable) {
            row.type = type_of(out->arena, weight->dtype, &weight->shape);
            row.bytes = (uint64_t)tp_shape_bytes(&weight->shape, weight->dtype);
        } else {
            row.note = "no numbers";
        }
        bytes += row.bytes;
        status = add_row(out, row);
    }
    if (status == TPUCL_OK) status = summarise(out, "keras", "weight", bytes);
    if (status == TPUCL_OK) {
        const tp_json *config = tp_keras_config(file);
        const tp_json *class_name = config ? tp_json_member(config, "class_name") : NULL;
        const bool has_class = class_name && class_name->kind == TP_JSON_STRING;
        out->summary =
            tp_arena_printf(out->arena, "%s%s%s, %s", has_class ? "a " : "weights alone",
                            has_class ? class_name->string : "",
                            tp_keras_compile_config(file) ? ", compiled" : "", out->summary);
        if (!out->summary) status = TPUCL_OUT_OF_MEMORY;
    }
    tp_keras_close(file);
    return status;
}

/* ---- checkpoints ---- */

static tpucl_status inspect_checkpoint(tpucl_inspection *out)
{
    tp_checkpoint *checkpoint = NULL;
    uint64_t bytes = 0;
    TP_TRY(tp_checkpoint_open(out->path, &checkpoint));
    tpucl_status status = TPUCL_OK;
    for (int32_t i = 0; status == TPUCL_OK && i < tp_checkpoint_file_count(checkpoint); i++) {
        const char *name = tp_checkpoint_file_at(checkpoint, i)->name, *dot = strchr(name, '.');
        const char *part =
            tp_arena_strndup(out->arena, name, dot ? (size_t)(dot - name) : strlen(name));
        const tp_safetensors *file = part ? tp_checkpoint_find_part(checkpoint, part) : NULL;
        if (file) status = add_tensors(out, file, part, &bytes);
    }
    if (status == TPUCL_OK) status = summarise(out, "checkpoint", "tensor", bytes);
    if (status == TPUCL_OK) {
        out->summary = tp_arena_printf(out->arena, "step %lld, %s, sums are right",
                                       (long long)tp_checkpoint_step(checkpoint), out->summary);
        if (!out->summary) status = TPUCL_OUT_OF_MEMORY;
    }
    tp_checkpoint_close(checkpoint);
    return status;
}

/* One of a folder. What is wrong with it is a row, not a failure. */
static tpucl_status add_checkpoint(tpucl_inspection *out, int64_t step, bool is_complete,
                                   uint64_t *inout_bytes)
{
    const char *path = tp_checkpoint_path(out->arena, out->path, step);
    tp_checkpoint *checkpoint = NULL;
    tpucl_inspection_row row = {
        .type = "", .note = "not finished, or being removed", .is_bad = !is_complete};
    if (!path) return TPUCL_OUT_OF_MEMORY;
    row.name = tp_arena_printf(out->arena, "step %lld", (long long)step);
    if (is_complete) {
        const tpucl_status status = tp_checkpoint_open(path, &checkpoint);
        if (status == TPUCL_OUT_OF_MEMORY) return status;
        for (int32_t i = 0; status == TPUCL_OK && i < tp_checkpoint_file_count(checkpoint); i++)
            row.bytes += tp_checkpoint_file_at(checkpoint, i)->bytes;
        row.is_bad = status != TPUCL_OK;
        row.note = row.is_bad ? tp_arena_strdup(out->arena, tpucl_last_error()->message) : "whole";
        if (row.is_bad) tp_error_clear();
        tp_checkpoint_close(checkpoint);
    }
    *inout_bytes += row.bytes;
    return add_row(out, row);
}

static tpucl_status inspect_checkpoints(tpucl_inspection *out, const tp_checkpoint_steps *steps)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < steps->complete_count; i++)
        TP_TRY(add_checkpoint(out, steps->complete[i], true, &bytes));
    for (size_t i = 0; i < steps->incomplete_count; i++)
        TP_TRY(add_checkpoint(out, steps->incomplete[i], false, &bytes));
    return summarise(out, "checkpoints", "checkpoint", bytes);
}

/* ---- events ---- */

static tpucl_status add_tag(tpucl_inspection *out, const tp_event_tag *tag)
{
    char number[TP_STR_DOUBLE_BYTES], last[TP_STR_DOUBLE_BYTES + 16] = "";
    if (tag->is_scalar) {
        tp_str_from_double(tag->last_value, number);
        snprintf(last, sizeof last, ", the last %s", number);
    }
    return add_row(
        out, (tpucl_inspection_row){
                 .name = tag->tag,
                 .type = tag->plugin,
                 .bytes = tag->bytes,
                 .note = tp_arena_printf(out->arena, "steps %lld to %lld, %llu value%s%s",
                                         (long long)tag->first_step, (long long)tag->last_step,
                                         (unsigned long long)tag->values,
                                         tag->values == 1 ? "" : "s", last)});
}

static tpucl_status inspect_events(tpucl_inspection *out, const char *const *paths, size_t count)
{
    tp_event_scan scan = {.arena = out->arena};
    for (size_t i = 0; i < count; i++) {
        tp_reader *source = NULL;
        TP_TRY(tp_reader_open_file(paths[i], 0, &source));
        const tpucl_status status = tp_event_scan_add(&scan, source, paths[i]);
        if (status == TPUCL_OK) continue;
        if (status != TPUCL_CORRUPT_DATA) return status;
        TP_TRY(add_row(out, (tpucl_inspection_row){
                                .name = paths[i],
                                .type = "",
                                .note = tp_arena_strdup(out->arena, tpucl_last_error()->message),
                                .is_bad = true}));
        tp_error_clear();
    }
    for (size_t i = 0; i < scan.tag_count; i++)
        TP_TRY(add_tag(out, &scan.tags[i]));
    out->kind = "events";
    out->summary = tp_arena_printf(out->arena, "%zu file%s, %llu events, %zu tag%s, %llu start%s",
                                   count, count == 1 ? "" : "s", (unsigned long long)scan.events,
                                   scan.tag_count, scan.tag_count == 1 ? "" : "s",
                                   (unsigned long long)scan.starts, scan.starts == 1 ? "" : "s");
    return out->summary ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* ---- which kind ---- */

static tpucl_status inspect_folder(tpucl_inspection *out)
{
    const char *manifest = tp_file_join(out->arena, out->path, "manifest.json");
    const char *config = tp_file_join(out->arena, out->path, "config.json");
    tp_checkpoint_steps steps;
    const char *const *names;
    size_t count, events = 0;
    if (!manifest || !config) return TPUCL_OUT_OF_MEMORY;
    if (tp_file_exists(manifest)) return inspect_checkpoint(out);
    if (tp_file_exists(config)) return inspect_keras(out);
    TP_TRY(tp_checkpoint_list(out->path, out->arena, &steps));
    if (steps.complete_count + steps.incomplete_count) return inspect_checkpoints(out, &steps);
    TP_TRY(tp_file_list(out->path, out->arena, &names, &count));
    const char **paths = TP_ARENA_NEW_ARRAY(out->arena, const char *, count + 1);
    if (!paths) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!strstr(names[i], "tfevents")) continue;
        paths[events] = tp_file_join(out->arena, out->path, names[i]);
        if (!paths[events++]) return TPUCL_OUT_OF_MEMORY;
    }
    if (events) return inspect_events(out, paths, events);
    return TP_FAIL(
        TPUCL_UNSUPPORTED,
        "'%s' is a folder without checkpoints (step-...), events (*tfevents*) and a Keras model "
        "(config.json); 'tpucl records inspect' looks at folders of records",
        out->path);
}

static bool is_safetensors(const unsigned char *head, size_t length)
{
    return length >= 9 && head[8] == '{' && !head[7] && !head[6] && !head[5] && !head[4];
}

static tpucl_status inspect_file(tpucl_inspection *out)
{
    static const unsigned char hdf5[] = {0x89, 'H', 'D', 'F'}, zip[] = {'P', 'K', 3, 4};
    unsigned char head[16];
    size_t length;
    tp_reader *source = NULL;
    TP_TRY(tp_file_read_head(out->path, sizeof head, head, &length));
    if (length >= 4 && (!memcmp(head, hdf5, 4) || !memcmp(head, zip, 4) || head[0] == '{'))
        return inspect_keras(out);
    if (is_safetensors(head, length)) return inspect_safetensors(out);
    TP_TRY(tp_reader_open_file(out->path, 0, &source));
    if (tp_event_scan_is_events(source)) return inspect_events(out, &out->path, 1);
    return TP_FAIL(TPUCL_UNSUPPORTED,
                   "'%s' is no checkpoint, no safetensors, Keras or event file; 'tpucl records "
                   "inspect' looks at "
                   "files of records",
                   out->path);
}

tpucl_status tpucl_inspect(const char *path, tpucl_inspection **out_inspection)
{
    TP_API_NEED(path);
    TP_API_NEED(out_inspection);
    *out_inspection = NULL;
    tpucl_inspection *made = TP_NEW(tpucl_inspection);
    if (!made) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_arena_create(0, &made->arena);
    if (status == TPUCL_OK) {
        made->path = tp_arena_strdup(made->arena, path);
        status = !made->path               ? TPUCL_OUT_OF_MEMORY
                 : tp_file_is_folder(path) ? inspect_folder(made)
                                           : inspect_file(made);
    }
    if (status == TPUCL_OK)
        *out_inspection = made;
    else
        tpucl_inspection_destroy(made);
    return status;
}

void tpucl_inspection_destroy(tpucl_inspection *inspection)
{
    if (!inspection) return;
    inspection_rows_deinit(&inspection->rows);
    tp_arena_destroy(inspection->arena);
    tp_free(inspection);
}

const char *tpucl_inspection_kind(const tpucl_inspection *inspection)
{
    return inspection ? inspection->kind : "";
}

const char *tpucl_inspection_summary(const tpucl_inspection *inspection)
{
    return inspection ? inspection->summary : "";
}

tpucl_inspection_row tpucl_inspection_row_at(const tpucl_inspection *inspection, int32_t index)
{
    const bool is_there = inspection && index >= 0 && (size_t)index < inspection->rows.count;
    return is_there ? inspection->rows.items[index] : (tpucl_inspection_row){0};
}

int32_t tpucl_inspection_faults(const tpucl_inspection *inspection)
{
    return inspection ? inspection->faults : 0;
}

tpucl_status tpucl_inspection_json(const tpucl_inspection *inspection, char **out_text)
{
    TP_API_NEED(inspection);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_string(&writer, "path", inspection->path);
    tp_json_put_string(&writer, "kind", inspection->kind);
    tp_json_put_string(&writer, "summary", inspection->summary);
    tp_json_put_int(&writer, "faults", inspection->faults);
    tp_json_key(&writer, "rows");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < inspection->rows.count; i++) {
        const tpucl_inspection_row *row = &inspection->rows.items[i];
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "name", row->name);
        tp_json_put_string(&writer, "type", row->type);
        tp_json_put_int(&writer, "bytes", (int64_t)row->bytes);
        tp_json_put_string(&writer, "note", row->note);
        tp_json_put_bool(&writer, "bad", row->is_bad);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}
