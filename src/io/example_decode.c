/* SPDX-License-Identifier: Apache-2.0
 * Reads Examples. The maps are walked once, remembering where each wanted feature stands last; then these are
 * decoded, numbers counted before memory is asked for. */
#include <stdlib.h>
#include "core/alloc.h"
#include "io/example.h"
#include "io/proto.h"

enum { EXAMPLE_FEATURES = 1, FEATURES_FEATURE = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { SEQUENCE_CONTEXT = 1, SEQUENCE_LISTS = 2, LIST_FEATURE = 1, VALUES = 1 };

static const char *const kind_names[] = {"none", "bytes", "float", "int64"};

const char *tp_feature_kind_name(tp_feature_kind kind)
{
    return kind_names[kind];
}

static tpucl_status check(const tp_proto_reader *reader, const char *message)
{
    if (!reader->mistake) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA, "%s: %s", message, reader->mistake);
}

/* ---- maps ---- */

typedef struct entry_visitor {
    tpucl_status (*visit)(struct entry_visitor *visitor, tp_view key, tp_view value);
} entry_visitor;

/* Field `number` of `message` is a map, perhaps in several pieces. Both halves of an entry may be missing or
 * come in any order. */
static tpucl_status walk_map(tp_view message, uint32_t number, entry_visitor *visitor)
{
    tp_proto_reader reader = tp_proto_read(message);
    tp_proto_field field;
    while (tp_proto_next(&reader, &field)) {
        if (field.number != number || field.wire != TP_PROTO_BYTES) continue;
        tp_proto_reader inner = tp_proto_read(field.bytes);
        tp_proto_field half;
        tp_view key = {"", 0}, value = {"", 0};
        while (tp_proto_next(&inner, &half)) {
            if (half.wire != TP_PROTO_BYTES) continue;
            if (half.number == ENTRY_KEY) key = half.bytes;
            if (half.number == ENTRY_VALUE) value = half.bytes;
        }
        TP_TRY(check(&inner, "entry of a map of features"));
        TP_TRY(visitor->visit(visitor, key, value));
    }
    return check(&reader, "map of features");
}

/* The map inside field `outer` of a record. */
static tpucl_status walk_record(tp_view record, uint32_t outer, entry_visitor *visitor)
{
    tp_proto_reader reader = tp_proto_read(record);
    tp_proto_field field;
    while (tp_proto_next(&reader, &field))
        if (field.number == outer && field.wire == TP_PROTO_BYTES)
            TP_TRY(walk_map(field.bytes, FEATURES_FEATURE, visitor));
    return check(&reader, "record");
}

/* ---- one feature ---- */

/* Calls for each list in the oneof; `kind` ends as the last one's. Lists of one kind add up, another kind
 * replaces what was there: that is how messages merge. */
static tpucl_status count_values(tp_view feature, tp_feature_kind *out_kind, size_t *out_count,
                                 const char **out_begin)
{
    tp_proto_reader reader = tp_proto_read(feature);
    tp_proto_field field;
    *out_kind = TP_FEATURE_NONE;
    *out_count = 0;
    *out_begin = feature.data;
    for (const char *at = reader.at; tp_proto_next(&reader, &field); at = reader.at) {
        if (field.wire != TP_PROTO_BYTES || field.number < 1 || field.number > 3) continue;
        if (*out_kind != (tp_feature_kind)field.number) {
            *out_kind = (tp_feature_kind)field.number;
            *out_count = 0;
            *out_begin = at;
        }
        tp_proto_reader list = tp_proto_read(field.bytes);
        tp_proto_field item;
        while (tp_proto_next(&list, &item)) {
            if (item.number != VALUES) continue;
            if (item.wire != TP_PROTO_BYTES || *out_kind == TP_FEATURE_BYTES) {
                *out_count += 1;
            } else if (*out_kind == TP_FEATURE_FLOAT) {
                *out_count += item.bytes.length / 4;
            } else {
                for (size_t i = 0; i < item.bytes.length; i++)
                    *out_count += (uint8_t)item.bytes.data[i] < 0x80;
            }
        }
        TP_TRY(check(&list, "list of values"));
    }
    return check(&reader, "feature");
}

static void put_float(float *to, uint32_t bits)
{
    memcpy(to, &bits, sizeof bits);
}

/* One field of a list; *inout_count values are there already. */
static tpucl_status take_item(const tp_proto_field *item, tp_feature_kind kind, void *values,
                              size_t *inout_count)
{
    const bool is_packed = item->wire == TP_PROTO_BYTES;
    tp_proto_reader packed = tp_proto_read(item->bytes);
    if (kind == TP_FEATURE_BYTES) {
        if (!is_packed) return TP_FAIL(TPUCL_CORRUPT_DATA, "list of bytes: a value is no bytes");
        ((tp_view *)values)[(*inout_count)++] = item->bytes;
    } else if (kind == TP_FEATURE_FLOAT) {
        uint32_t bits;
        if (!is_packed && item->wire != TP_PROTO_FIXED32)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "list of floats: a value has not 4 bytes");
        if (!is_packed) put_float((float *)values + (*inout_count)++, (uint32_t)item->value);
        while (is_packed && tp_proto_next_fixed32(&packed, &bits))
            put_float((float *)values + (*inout_count)++, bits);
    } else {
        uint64_t value;
        if (!is_packed && item->wire != TP_PROTO_VARINT)
            return TP_FAIL(TPUCL_CORRUPT_DATA, "list of integers: a value is no varint");
        if (!is_packed) ((int64_t *)values)[(*inout_count)++] = (int64_t)item->value;
        while (is_packed && tp_proto_next_varint(&packed, &value))
            ((int64_t *)values)[(*inout_count)++] = (int64_t)value;
    }
    return check(&packed, "packed list");
}

static const size_t kind_bytes[] = {1, sizeof(tp_view), sizeof(float), sizeof(int64_t)};

/* Appends to `values` the lists of `kind` from `begin` on. */
static tpucl_status take_values(tp_view lists, tp_feature_kind kind, void *values,
                                size_t *inout_count)
{
    tp_proto_reader reader = tp_proto_read(lists);
    tp_proto_field field, item;
    while (tp_proto_next(&reader, &field)) {
        if (field.wire != TP_PROTO_BYTES || field.number != (uint32_t)kind) continue;
        tp_proto_reader list = tp_proto_read(field.bytes);
        while (tp_proto_next(&list, &item))
            if (item.number == VALUES) TP_TRY(take_item(&item, kind, values, inout_count));
    }
    return TPUCL_OK; /* counted before: mistakes were found then */
}

tpucl_status tp_feature_decode(tp_view feature, tp_arena *arena, tp_feature_values *out_values)
{
    const char *begin;
    size_t taken = 0;
    *out_values = (tp_feature_values){0};
    TP_TRY(count_values(feature, &out_values->kind, &out_values->count, &begin));
    void *values = tp_arena_alloc_array(arena, out_values->count + 1, kind_bytes[out_values->kind]);
    if (!values) return TPUCL_OUT_OF_MEMORY;
    out_values->bytes = values;
    const tp_view lists = {begin, (size_t)(feature.data + feature.length - begin)};
    TP_TRY(take_values(lists, out_values->kind, values, &taken));
    if (taken != out_values->count)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "list of %s: the last value is cut",
                       kind_names[out_values->kind]);
    return TPUCL_OK;
}

/* ---- by specification ---- */

typedef struct spec_visitor {
    entry_visitor base;
    const tp_feature_spec *specs;
    size_t count, next; /* keys mostly come in one order: look there first */
    tp_view *found;     /* [count]; data NULL: missing */
} spec_visitor;

static tpucl_status visit_spec(entry_visitor *base, tp_view key, tp_view value)
{
    spec_visitor *visitor = (spec_visitor *)base;
    for (size_t i = 0; i < visitor->count; i++) {
        const size_t at = (visitor->next + i) % visitor->count;
        if (!tp_view_equal_text(key, visitor->specs[at].key)) continue;
        visitor->found[at] = value;
        visitor->next = at + 1;
        break;
    }
    return TPUCL_OK;
}

static tpucl_status begin_visit(spec_visitor *visitor, const tp_feature_spec *specs, size_t count,
                                tp_arena *arena)
{
    *visitor = (spec_visitor){.base = {visit_spec}, .specs = specs, .count = count};
    visitor->found = TP_ARENA_NEW_ARRAY(arena, tp_view, count + 1);
    return visitor->found ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status check_kind(const tp_feature_spec *spec, const tp_feature_values *values)
{
    if (values->kind == spec->kind) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "feature '%s' holds %s, expected %s", spec->key,
                   kind_names[values->kind], kind_names[spec->kind]);
}

static tpucl_status check_count(const tp_feature_spec *spec, size_t count, const char *where)
{
    if (spec->count < 0 || count == (size_t)spec->count) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "feature '%s' has %zu values%s, expected %lld",
                   spec->key, count, where, (long long)spec->count);
}

static tpucl_status decode_found(const tp_feature_spec *spec, tp_view found, tp_arena *arena,
                                 tp_feature_values *out)
{
    *out = (tp_feature_values){0};
    if (found.data) {
        const tpucl_status status = tp_feature_decode(found, arena, out);
        if (status != TPUCL_OK) {
            tp_error_note("feature '%s'", spec->key);
            return status;
        }
    }
    if (out->kind == TP_FEATURE_NONE) {
        if (!spec->is_optional)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "feature '%s' is missing", spec->key);
        *out = spec->missing;
        out->kind = spec->kind;
        return TPUCL_OK;
    }
    TP_TRY(check_kind(spec, out));
    return check_count(spec, out->count, "");
}

static tpucl_status decode_specs(tp_view record, uint32_t outer, const tp_feature_spec *specs,
                                 size_t count, tp_arena *arena, tp_feature_values *out)
{
    spec_visitor visitor;
    TP_TRY(begin_visit(&visitor, specs, count, arena));
    TP_TRY(walk_record(record, outer, &visitor.base));
    for (size_t i = 0; i < count; i++)
        TP_TRY(decode_found(&specs[i], visitor.found[i], arena, &out[i]));
    return TPUCL_OK;
}

tpucl_status tp_example_decode(tp_view record, const tp_feature_spec *specs, size_t spec_count,
                               tp_arena *arena, tp_feature_values *out_values)
{
    return decode_specs(record, EXAMPLE_FEATURES, specs, spec_count, arena, out_values);
}

/* ---- everything ---- */

typedef struct list_visitor {
    entry_visitor base;
    tp_feature_entry *entries; /* NULL: only counts */
    size_t count;
} list_visitor;

static tpucl_status visit_list(entry_visitor *base, tp_view key, tp_view value)
{
    list_visitor *visitor = (list_visitor *)base;
    if (visitor->entries)
        visitor->entries[visitor->count] = (tp_feature_entry){key, value, visitor->count};
    visitor->count++;
    return TPUCL_OK;
}

/* By key, then by place. */
static int compare_entries(const void *a, const void *b)
{
    const tp_feature_entry *x = a, *y = b;
    const size_t length = x->key.length < y->key.length ? x->key.length : y->key.length;
    const int order = memcmp(x->key.data, y->key.data, length);
    if (order) return order;
    if (x->key.length != y->key.length) return x->key.length < y->key.length ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

tpucl_status tp_example_list(tp_view record, tp_arena *arena, const tp_feature_entry **out_entries,
                             size_t *out_count)
{
    list_visitor visitor = {.base = {visit_list}};
    TP_TRY(walk_record(record, EXAMPLE_FEATURES, &visitor.base));
    tp_feature_entry *entries = TP_ARENA_NEW_ARRAY(arena, tp_feature_entry, visitor.count + 1);
    if (!entries) return TPUCL_OUT_OF_MEMORY;
    const size_t all = visitor.count;
    visitor = (list_visitor){.base = {visit_list}, .entries = entries};
    TP_TRY(walk_record(record, EXAMPLE_FEATURES, &visitor.base));
    qsort(entries, all, sizeof *entries, compare_entries);
    size_t kept = 0;
    for (size_t i = 0; i < all; i++) {
        if (kept && tp_view_equal(entries[kept - 1].key, entries[i].key)) kept--;
        entries[kept++] = entries[i];
    }
    *out_entries = entries;
    *out_count = kept;
    return TPUCL_OK;
}

/* ---- sequences ---- */

/* A FeatureList: the steps, each a Feature. */
static tpucl_status decode_steps(const tp_feature_spec *spec, tp_view list, tp_arena *arena,
                                 tp_sequence_values *out)
{
    tp_proto_reader reader = tp_proto_read(list);
    tp_proto_field field;
    size_t total = 0;
    *out = (tp_sequence_values){.values = {.kind = spec->kind}};
    while (tp_proto_next(&reader, &field))
        out->steps += field.number == LIST_FEATURE && field.wire == TP_PROTO_BYTES;
    TP_TRY(check(&reader, "list of features"));
    size_t *ends = TP_ARENA_NEW_ARRAY(arena, size_t, out->steps + 1);
    tp_feature_values *steps = TP_ARENA_NEW_ARRAY(arena, tp_feature_values, out->steps + 1);
    if (!ends || !steps) return TPUCL_OUT_OF_MEMORY;
    reader = tp_proto_read(list);
    for (size_t i = 0; tp_proto_next(&reader, &field);) {
        if (field.number != LIST_FEATURE || field.wire != TP_PROTO_BYTES) continue;
        TP_TRY(tp_feature_decode(field.bytes, arena, &steps[i]));
        if (steps[i].kind != TP_FEATURE_NONE) TP_TRY(check_kind(spec, &steps[i]));
        TP_TRY(check_count(spec, steps[i].count, " in a step"));
        ends[i] = total += steps[i].count;
        i++;
    }
    char *all = tp_arena_alloc_array(arena, total + 1, kind_bytes[spec->kind]), *to = all;
    if (!all) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < out->steps; i++) {
        const size_t bytes = steps[i].count * kind_bytes[spec->kind];
        if (bytes) memcpy(to, steps[i].bytes, bytes);
        to += bytes;
    }
    out->values.count = total;
    out->values.bytes = (const tp_view *)(const void *)all;
    out->ends = ends;
    return TPUCL_OK;
}

tpucl_status tp_sequence_decode(tp_view record, const tp_feature_spec *context,
                                size_t context_count, tp_feature_values *out_context,
                                const tp_feature_spec *lists, size_t list_count,
                                tp_sequence_values *out_lists, tp_arena *arena)
{
    spec_visitor visitor;
    TP_TRY(decode_specs(record, SEQUENCE_CONTEXT, context, context_count, arena, out_context));
    TP_TRY(begin_visit(&visitor, lists, list_count, arena));
    TP_TRY(walk_record(record, SEQUENCE_LISTS, &visitor.base));
    for (size_t i = 0; i < list_count; i++) {
        if (!visitor.found[i].data && !lists[i].is_optional)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "list of features '%s' is missing",
                           lists[i].key);
        const tp_view found = visitor.found[i].data ? visitor.found[i] : (tp_view){"", 0};
        const tpucl_status status = decode_steps(&lists[i], found, arena, &out_lists[i]);
        if (status != TPUCL_OK) {
            tp_error_note("list of features '%s'", lists[i].key);
            return status;
        }
    }
    return TPUCL_OK;
}
