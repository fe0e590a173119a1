/* SPDX-License-Identifier: Apache-2.0
 * Writes Examples. */
#include "io/example.h"
#include "io/proto.h"

enum { FIELD = 1, KEY = 1, VALUE = 2, CONTEXT = 1, LISTS = 2 };

static void put_feature(tp_str_builder *to, uint32_t number, const tp_feature_values *values)
{
    const size_t feature = tp_proto_begin(to, number);
    if (values->kind != TP_FEATURE_NONE) {
        const size_t list = tp_proto_begin(to, (uint32_t)values->kind);
        if (values->kind == TP_FEATURE_BYTES)
            for (size_t i = 0; i < values->count; i++)
                tp_proto_put_bytes(to, FIELD, values->bytes[i].data, values->bytes[i].length);
        else if (values->count && values->kind == TP_FEATURE_FLOAT)
            tp_proto_put_floats(to, FIELD, values->floats, values->count);
        else if (values->count)
            tp_proto_put_ints(to, FIELD, values->ints, values->count);
        tp_proto_end(to, list);
    }
    tp_proto_end(to, feature);
}

static void put_features(tp_str_builder *to, uint32_t number, const tp_feature *features,
                         size_t count)
{
    const size_t all = tp_proto_begin(to, number);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = tp_proto_begin(to, FIELD);
        tp_proto_put_text(to, KEY, features[i].key);
        put_feature(to, VALUE, &features[i].values);
        tp_proto_end(to, entry);
    }
    tp_proto_end(to, all);
}

void tp_example_encode(tp_str_builder *to, const tp_feature *features, size_t count)
{
    put_features(to, FIELD, features, count);
}

void tp_sequence_encode(tp_str_builder *to, const tp_feature *context, size_t context_count,
                        const tp_feature_list *lists, size_t list_count)
{
    if (context_count) put_features(to, CONTEXT, context, context_count);
    const size_t all = tp_proto_begin(to, LISTS);
    for (size_t i = 0; i < list_count; i++) {
        const size_t entry = tp_proto_begin(to, FIELD);
        tp_proto_put_text(to, KEY, lists[i].key);
        const size_t list = tp_proto_begin(to, VALUE);
        for (size_t k = 0; k < lists[i].count; k++)
            put_feature(to, FIELD, &lists[i].steps[k]);
        tp_proto_end(to, list);
        tp_proto_end(to, entry);
    }
    tp_proto_end(to, all);
}
