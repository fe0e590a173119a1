/* SPDX-License-Identifier: Apache-2.0
 * tf.train.Example and SequenceExample (TensorFlow, core/example/{example,feature}.proto): named lists of bytes,
 * floats or integers. A specification says which features are wanted and how many values each has; the others
 * cost a comparison.
 *
 * As in TensorFlow: packed and unpacked numbers, unknown fields passed over, the last of several features of one
 * name counts, a feature without a kind counts as missing. Thread-compatible.
 */
#ifndef TP_IO_EXAMPLE_H
#define TP_IO_EXAMPLE_H

#include "core/arena.h"
#include "core/str.h"

typedef enum tp_feature_kind { /* the number in the oneof of Feature; 0: none is set */
                               TP_FEATURE_NONE,
                               TP_FEATURE_BYTES,
                               TP_FEATURE_FLOAT,
                               TP_FEATURE_INT64
} tp_feature_kind;

const char *tp_feature_kind_name(tp_feature_kind kind); /* "bytes", "float", "int64", "none" */

typedef struct tp_feature_values {
    tp_feature_kind kind;
    size_t count;
    union {
        const tp_view *bytes; /* the views point into the record */
        const float *floats;
        const int64_t *ints;
    };
} tp_feature_values;

typedef struct tp_feature_spec {
    const char *key;
    tp_feature_kind kind;
    bool is_optional; /* missing: `missing` is what it is taken as (count 0: no values) */
    int64_t count;    /* of values; -1: any */
    tp_feature_values missing;
} tp_feature_spec;

/* One result per specification, in its order, from `arena`; bytes stay where they are in the record.
 * TPUCL_CORRUPT_DATA for what is no Example, TPUCL_INVALID_ARGUMENT for one that does not fit the specification:
 * the message names the key, what was wanted and what is there. The caller adds file and offset. */
tpucl_status tp_example_decode(tp_view record, const tp_feature_spec *specs, size_t spec_count,
                               tp_arena *arena, tp_feature_values *out_values) TPUCL_MUST_CHECK;

/* ---- everything that is in it ---- */

typedef struct tp_feature_entry {
    tp_view key;
    tp_view feature; /* the bytes of its Feature */
    size_t place;    /* among all entries of the record */
} tp_feature_entry;

/* In order of key, each once. */
tpucl_status tp_example_list(tp_view record, tp_arena *arena, const tp_feature_entry **out_entries,
                             size_t *out_count) TPUCL_MUST_CHECK;
tpucl_status tp_feature_decode(tp_view feature, tp_arena *arena,
                               tp_feature_values *out_values) TPUCL_MUST_CHECK;

/* ---- sequences ---- */

typedef struct tp_sequence_values {
    tp_feature_values values; /* of all steps, one after the other */
    size_t steps;
    const size_t *ends; /* [steps]: behind each step's last value */
} tp_sequence_values;

/* `context` as in an Example; each of `lists` has `count` values in every step. */
tpucl_status tp_sequence_decode(tp_view record, const tp_feature_spec *context,
                                size_t context_count, tp_feature_values *out_context,
                                const tp_feature_spec *lists, size_t list_count,
                                tp_sequence_values *out_lists, tp_arena *arena) TPUCL_MUST_CHECK;

/* ---- writing ---- */

/* Bytes of an Example appended to `to`, whose failure sticks; features in the order given. */
typedef struct tp_feature {
    const char *key;
    tp_feature_values values;
} tp_feature;
void tp_example_encode(tp_str_builder *to, const tp_feature *features, size_t count);

typedef struct tp_feature_list {
    const char *key;
    const tp_feature_values *steps;
    size_t count;
} tp_feature_list;
void tp_sequence_encode(tp_str_builder *to, const tp_feature *context, size_t context_count,
                        const tp_feature_list *lists, size_t list_count);

#endif
