/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: Examples and SequenceExamples. What is read is read completely; what was listed, written and listed
 * again is the same. */
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "io/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static size_t touch(const tp_feature_values *values)
{
    size_t sum = 0;
    for (size_t i = 0; i < values->count; i++)
        if (values->kind == TP_FEATURE_BYTES)
            for (size_t k = 0; k < values->bytes[i].length; k++)
                sum += (uint8_t)values->bytes[i].data[k];
        else if (values->kind == TP_FEATURE_FLOAT)
            sum += values->floats[i] > 0;
        else
            sum += (size_t)values->ints[i];
    return sum;
}

/* Keys with zeros in them cannot be written again. */
static bool list_all(tp_view record, tp_arena *arena, tp_feature **out, size_t *out_count)
{
    const tp_feature_entry *entries;
    size_t count;
    if (tp_example_list(record, arena, &entries, &count) != TPUCL_OK) return false;
    *out = TP_ARENA_NEW_ARRAY(arena, tp_feature, count + 1);
    require(*out);
    for (size_t i = 0; i < count; i++) {
        if (memchr(entries[i].key.data, 0, entries[i].key.length)) return false;
        (*out)[i].key = tp_arena_strndup(arena, entries[i].key.data, entries[i].key.length);
        if (tp_feature_decode(entries[i].feature, arena, &(*out)[i].values) != TPUCL_OK)
            return false;
        touch(&(*out)[i].values);
    }
    *out_count = count;
    return true;
}

static void check_list(tp_view record, tp_arena *arena)
{
    tp_feature *features, *again;
    size_t count, again_count;
    tp_str_builder first = {0}, second = {0};
    if (!list_all(record, arena, &features, &count)) return;
    tp_example_encode(&first, features, count);
    require(list_all((tp_view){first.data, first.length}, arena, &again, &again_count));
    require(count == again_count);
    tp_example_encode(&second, again, again_count);
    require(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    tp_str_builder_deinit(&first);
    tp_str_builder_deinit(&second);
}

static void check_specs(tp_view record, tp_arena *arena)
{
    const tp_feature_spec specs[] = {
        {.key = "label", .kind = TP_FEATURE_INT64, .is_optional = true, .count = 1},
        {.key = "box", .kind = TP_FEATURE_FLOAT, .is_optional = true, .count = -1},
        {.key = "tokens", .kind = TP_FEATURE_INT64, .is_optional = true, .count = -1},
        {.key = "names", .kind = TP_FEATURE_BYTES, .is_optional = true, .count = -1}};
    tp_feature_values values[4];
    tp_sequence_values lists[4];
    if (tp_example_decode(record, specs, 4, arena, values) == TPUCL_OK)
        for (int i = 0; i < 4; i++)
            touch(&values[i]);
    if (tp_sequence_decode(record, specs, 4, values, specs, 4, lists, arena) == TPUCL_OK)
        for (int i = 0; i < 4; i++) {
            touch(&lists[i].values);
            if (lists[i].steps) require(lists[i].ends[lists[i].steps - 1] == lists[i].values.count);
        }
    else
        require(tpucl_last_error()->message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_arena *arena;
    const tp_view record = {(const char *)data, size};
    require(tp_arena_create(0, &arena) == TPUCL_OK);
    check_list(record, arena);
    check_specs(record, arena);
    tp_arena_destroy(arena);
    return 0;
}
