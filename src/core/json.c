/* SPDX-License-Identifier: Apache-2.0
 * From text to values: json_scan.c checks the grammar and notes where each value stands, cJSON
 * decodes, and this file joins the two (both meet the values in file order) into a tree of our own
 * with exact integers, positions and sorted members. Typed access is in json_get.c. */
#include <cJSON.h>
#include <stdlib.h>
#include <string.h>
#include "core/file.h"
#include "core/json_scan.h"
#include "core/str.h"
#include "core/thread.h"

struct tp_json_document {
    tp_arena *arena;
    const char *name;
    tp_json root;
};

/* State of the join. */
typedef struct builder {
    tp_json_document *document;
    const tp_json_scan *scan;
    const char *text; /* the original, for numbers */
    size_t next;      /* position in scan->places */
} builder;

/* cJSON keeps the place of its last error in a global variable. */
static tp_mutex cjson_mutex = TP_MUTEX_INIT;

static int compare_members(const void *a, const void *b)
{
    const tp_json *x = *(const tp_json *const *)a, *y = *(const tp_json *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static tpucl_status sort_members(builder *b, tp_json *object)
{
    object->sorted = TP_ARENA_NEW_ARRAY(b->document->arena, const tp_json *, object->count);
    if (!object->sorted) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < object->count; i++)
        object->sorted[i] = &object->items[i];
    if (object->count) /* C99 7.20.5 leaves a zero count to the pointer's validity; there is none */
        qsort(object->sorted, object->count, sizeof object->sorted[0], compare_members);
    for (size_t i = 1; i < object->count; i++) {
        const tp_json *first = object->sorted[i - 1], *second = object->sorted[i];
        if (strcmp(first->key, second->key) != 0) continue;
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "expected every key once, found '%.64s' again (first on line %d) at %s",
                       second->key, first->line, tp_json_where(second, where));
    }
    return TPUCL_OK;
}

static tpucl_status read_number(const builder *b, const tp_json_place *place, tp_json *value)
{
    tp_view text = {b->text + place->offset, place->length};
    bool plain = !memchr(text.data, '.', text.length) && !memchr(text.data, 'e', text.length) &&
                 !memchr(text.data, 'E', text.length);
    if (tp_str_parse_double(text, &value->number) != TPUCL_OK) {
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "expected a number that a double can hold, found "
                       "'%.*s' at %s",
                       (int)(text.length < 40 ? text.length : 40), text.data,
                       tp_json_where(value, where));
    }
    /* Beyond 64 bits an integer is just a number: typed access then refuses it as an integer. */
    bool exact = plain && tp_str_parse_int64(text, &value->integer) == TPUCL_OK;
    value->kind = exact ? TP_JSON_INTEGER : TP_JSON_NUMBER;
    return TPUCL_OK;
}

static tpucl_status build(builder *b, const cJSON *from, tp_json *value);

static tpucl_status build_children(builder *b, const cJSON *from, tp_json *value)
{
    size_t count = 0;
    for (const cJSON *child = from->child; child; child = child->next)
        count++;
    tp_json *items = TP_ARENA_NEW_ARRAY(b->document->arena, tp_json, count);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    value->items = items;
    value->count = count;
    size_t i = 0;
    for (const cJSON *child = from->child; child; child = child->next, i++) {
        items[i].parent = value;
        items[i].index = i;
        if (value->kind == TP_JSON_OBJECT) {
            items[i].key = tp_arena_strdup(b->document->arena, child->string);
            if (!items[i].key) return TPUCL_OUT_OF_MEMORY;
        }
        tpucl_status status = build(b, child, &items[i]);
        if (status != TPUCL_OK) return status;
    }
    return value->kind == TP_JSON_OBJECT ? sort_members(b, value) : TPUCL_OK;
}

/* Depth is limited by the scan, so recursion is safe. */
static tpucl_status build(builder *b, const cJSON *from, tp_json *value)
{
    TP_CHECK(b->next < b->scan->places.count);
    const tp_json_place *place = &b->scan->places.items[b->next++];
    value->line = place->line;
    value->column = place->column;
    value->document = b->document;
    if (cJSON_IsNumber(from)) return read_number(b, place, value);
    if (cJSON_IsString(from)) {
        value->kind = TP_JSON_STRING;
        value->string = tp_arena_strdup(b->document->arena, from->valuestring);
        if (!value->string) return TPUCL_OUT_OF_MEMORY;
        value->string_length = strlen(value->string);
        return TPUCL_OK;
    }
    if (cJSON_IsArray(from) || cJSON_IsObject(from)) {
        value->kind = cJSON_IsArray(from) ? TP_JSON_ARRAY : TP_JSON_OBJECT;
        return build_children(b, from, value);
    }
    value->kind = cJSON_IsBool(from) ? TP_JSON_BOOL : TP_JSON_NULL;
    value->boolean = cJSON_IsTrue(from);
    return TPUCL_OK;
}

/* cJSON reads numbers of at most 63 characters and by the locale's decimal point. Ours are read
 * from the original, so cJSON gets a copy in which every number is a "0" and blanks. */
static cJSON *decode(const char *text, size_t length, const tp_json_scan *scan)
{
    char *copy = tp_alloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (size_t i = 0; i < scan->places.count; i++) {
        const tp_json_place *place = &scan->places.items[i];
        if (!place->length) continue;
        memset(copy + place->offset, ' ', place->length);
        copy[place->offset] = '0';
    }
    tp_mutex_lock(&cjson_mutex);
    cJSON *tree = cJSON_ParseWithLengthOpts(copy, length + 1, NULL, true);
    tp_mutex_unlock(&cjson_mutex);
    tp_free(copy);
    /* What the scan accepts cJSON accepts, so that only memory can be missing. */
    if (!tree)
        TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for the values of %zu bytes of JSON", length);
    return tree;
}

tpucl_status tp_json_parse(const char *text, size_t length, const char *name,
                           tp_json_document **out_document)
{
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    tp_json_scan scan = {0};
    cJSON *tree = NULL;
    *out_document = NULL;
    tp_json_document *document = TP_NEW(tp_json_document);
    if (!document) goto done;
    TP_TRY_GOTO(status, tp_arena_create(0, &document->arena), done);
    status = TPUCL_OUT_OF_MEMORY;
    document->name = tp_arena_strdup(document->arena, name);
    if (!document->name) goto done;
    status = tp_json_scan_text(text, length, name, &scan);
    if (status != TPUCL_OK) goto done;
    tree = decode(text, length, &scan);
    status = TPUCL_OUT_OF_MEMORY;
    if (!tree) goto done;
    builder b = {.document = document, .scan = &scan, .text = text};
    status = build(&b, tree, &document->root);
    if (status != TPUCL_OK) goto done;
    *out_document = document;
    document = NULL;
done:
    cJSON_Delete(tree);
    tp_json_scan_deinit(&scan);
    tp_json_destroy(document);
    return status;
}

tpucl_status tp_json_read_file(const char *path, size_t max_bytes, tp_json_document **out_document)
{
    char *text;
    size_t length;
    *out_document = NULL;
    TP_TRY(tp_file_read(path, max_bytes, &text, &length));
    tpucl_status status = tp_json_parse(text, length, path, out_document);
    tp_free(text);
    return status;
}

void tp_json_destroy(tp_json_document *document)
{
    if (!document) return;
    tp_arena_destroy(document->arena);
    tp_free(document);
}

const tp_json *tp_json_root(const tp_json_document *document)
{
    return &document->root;
}

const char *tp_json_name(const tp_json_document *document)
{
    return document->name;
}
