/* SPDX-License-Identifier: Apache-2.0
 * Reads safetensors files, which may come from anywhere. */
#include <stdlib.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/file.h"
#include "core/json.h"
#include "io/safetensors.h"
#include "io/safetensors_dtype.h"
#include "io/store.h"

/* The reference reader takes headers of 100 MB; nodes of parsed JSON are some fifty times the text, and
 * ours describe a few thousand variables. */
enum { MAX_HEADER_BYTES = 8 << 20, MAX_TENSORS = 1 << 16 };
static const size_t max_file_bytes = (size_t)1 << 38;

struct tp_safetensors {
    char *bytes;
    size_t length, data_begin;
    tp_arena *arena;
    tp_tensor_entry *entries;
    int32_t count;
    const char *path;
};

typedef struct span {
    uint64_t begin, end;
    const char *name;
} span;

static tpucl_status corrupt(const tp_safetensors *file, const char *tensor, const char *what)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': tensor '%s': %s", file->path, tensor, what);
}

static tpucl_status read_shape(const tp_safetensors *file, const tp_json *member,
                               tp_tensor_entry *entry)
{
    const tp_json *shape = NULL;
    int64_t dims[TP_MAX_RANK];
    TP_TRY(tp_json_require(member, "shape", TP_JSON_ARRAY, &shape));
    if (shape->count > TP_MAX_RANK) return corrupt(file, member->key, "rank above 8");
    for (size_t i = 0; i < shape->count; i++)
        TP_TRY(tp_json_as_int64(&shape->items[i], 0, TP_MAX_ELEMS, &dims[i]));
    tpucl_status status = tp_shape_init(&entry->shape, (int)shape->count, dims);
    if (status != TPUCL_OK) tp_error_note("'%s': tensor '%.200s'", file->path, member->key);
    return status;
}

static tpucl_status read_entry(tp_safetensors *file, const tp_json *member, tp_tensor_entry *entry,
                               span *out_span)
{
    const tp_json *dtype = NULL, *offsets = NULL;
    int64_t begin = 0, end = 0, room = (int64_t)(file->length - file->data_begin);
    TP_TRY(tp_json_expect(member, TP_JSON_OBJECT));
    TP_TRY(tp_json_require(member, "dtype", TP_JSON_STRING, &dtype));
    TP_TRY(tp_json_require(member, "data_offsets", TP_JSON_ARRAY, &offsets));
    if (!tp_safetensors_dtype_parse(dtype->string, &entry->dtype))
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "'%s': tensor '%s' is %.16s; expected F32, BF16, I32, U32, U8", file->path,
                       member->key, dtype->string);
    TP_TRY(read_shape(file, member, entry));
    if (offsets->count != 2) return corrupt(file, member->key, "data_offsets are not two numbers");
    TP_TRY(tp_json_as_int64(&offsets->items[0], 0, room, &begin));
    TP_TRY(tp_json_as_int64(&offsets->items[1], begin, room, &end));
    entry->bytes = (uint64_t)tp_shape_bytes(&entry->shape, entry->dtype);
    if (entry->bytes != (uint64_t)(end - begin))
        return corrupt(file, member->key, "data_offsets do not fit shape and dtype");
    entry->name = tp_arena_strdup(file->arena, member->key);
    if (!entry->name) return TPUCL_OUT_OF_MEMORY;
    entry->data = file->bytes + file->data_begin + begin;
    *out_span = (span){(uint64_t)begin, (uint64_t)end, entry->name};
    return TPUCL_OK;
}

static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Without gap or overlap from the header to the end of the file. */
static tpucl_status check_spans(const tp_safetensors *file, span *spans)
{
    uint64_t at = 0;
    qsort(spans, (size_t)file->count, sizeof *spans, compare_spans);
    for (int32_t i = 0; i < file->count; i++) {
        if (spans[i].begin != at)
            return corrupt(file, spans[i].name, "its data leave a gap or overlap another's");
        at = spans[i].end;
    }
    if (at != file->length - file->data_begin)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %zu bytes of data, its tensors cover %llu",
                       file->path, file->length - file->data_begin, (unsigned long long)at);
    return TPUCL_OK;
}

static tpucl_status read_members(tp_safetensors *file, const tp_json *root)
{
    TP_TRY(tp_json_expect(root, TP_JSON_OBJECT));
    if (root->count > MAX_TENSORS)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' has %zu tensors; at most %d are read", file->path,
                       root->count, MAX_TENSORS);
    file->entries = TP_ARENA_NEW_ARRAY(file->arena, tp_tensor_entry, root->count + 1);
    span *spans = TP_ARENA_NEW_ARRAY(file->arena, span, root->count + 1);
    if (!file->entries || !spans) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < root->count; i++) {
        if (strcmp(root->items[i].key, "__metadata__") == 0) continue;
        TP_TRY(read_entry(file, &root->items[i], &file->entries[file->count], &spans[file->count]));
        file->count++;
    }
    return check_spans(file, spans);
}

/* The length of the header, which is what a file begins with; `bytes` is the file's size. */
static tpucl_status header_length(const char *path, const char *head, uint64_t bytes,
                                  uint64_t *out_length)
{
    uint64_t length = 0;
    if (bytes < 8)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' has %llu bytes, too few for a safetensors file",
                       path, (unsigned long long)bytes);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)(unsigned char)head[i] << (8 * i);
    if (length < 2 || length > bytes - 8 || length > MAX_HEADER_BYTES)
        return TP_FAIL(
            TPUCL_CORRUPT_DATA,
            "'%s' has %llu bytes and announces a header of %llu; it is no safetensors file "
            "or was cut",
            path, (unsigned long long)bytes, (unsigned long long)length);
    *out_length = length;
    return TPUCL_OK;
}

/* Before gigabytes are read of what may be any other file. */
static tpucl_status check_head(const char *path)
{
    char head[8];
    size_t got = 0;
    uint64_t bytes = 0, ignored;
    TP_TRY(tp_file_read_head(path, sizeof head, head, &got));
    if (got < sizeof head) return TPUCL_OK; /* a pipe, or so short that it can be read at once */
    TP_TRY(tp_file_size(path, &bytes));
    return header_length(path, head, bytes, &ignored);
}

static tpucl_status parse(tp_safetensors *file)
{
    tp_json_document *document = NULL;
    uint64_t header = 0;
    TP_TRY(header_length(file->path, file->bytes, file->length, &header));
    file->data_begin = 8 + (size_t)header;
    tpucl_status status = tp_json_parse(file->bytes + 8, (size_t)header, file->path, &document);
    if (status == TPUCL_OK) status = read_members(file, tp_json_root(document));
    tp_json_destroy(document);
    /* The words of the JSON reader and of shapes for what is malformed. */
    const bool malformed = status == TPUCL_INVALID_CONFIG || status == TPUCL_INVALID_ARGUMENT;
    return malformed ? tp_error_recast(TPUCL_CORRUPT_DATA) : status;
}

tpucl_status tp_safetensors_adopt(char *bytes, size_t length, const char *name,
                                  tp_safetensors **out_file)
{
    tp_arena *arena = NULL;
    tpucl_status status = tp_arena_create(0, &arena);
    tp_safetensors *file = arena ? TP_ARENA_NEW(arena, tp_safetensors) : NULL;
    const char *copy = arena ? tp_arena_strdup(arena, name) : NULL;
    if (!file || !copy) {
        tp_free(bytes);
        tp_arena_destroy(arena);
        return status == TPUCL_OK ? TPUCL_OUT_OF_MEMORY : status;
    }
    *file = (tp_safetensors){.bytes = bytes, .length = length, .arena = arena, .path = copy};
    status = parse(file);
    if (status != TPUCL_OK) {
        tp_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return TPUCL_OK;
}

tpucl_status tp_safetensors_open(const char *path, tp_safetensors **out_file)
{
    char *bytes = NULL;
    size_t length = 0;
    if (!tp_store_is_remote(path)) TP_TRY(check_head(tp_store_path(path)));
    TP_TRY(tp_store_read(path, max_file_bytes, &bytes, &length));
    return tp_safetensors_adopt(bytes, length, path, out_file);
}

void tp_safetensors_close(tp_safetensors *file)
{
    if (!file) return;
    tp_free(file->bytes);
    tp_arena_destroy(file->arena);
}

int32_t tp_safetensors_count(const tp_safetensors *file)
{
    return file->count;
}

const tp_tensor_entry *tp_safetensors_entry(const tp_safetensors *file, int32_t index)
{
    return &file->entries[index];
}

const tp_tensor_entry *tp_safetensors_find(const tp_safetensors *file, const char *name)
{
    for (int32_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].name, name) == 0) return &file->entries[i];
    return NULL;
}
