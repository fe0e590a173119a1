/* SPDX-License-Identifier: Apache-2.0
 * The table of a layer's arguments: name, place in the type's struct, kind. See layer.h.
 *
 *     static const tp_layer_arg arguments[] = {
 *         {"units", offsetof(dense_args, units), TP_LAYER_INT, TP_LAYER_REQUIRED,
 *          TP_LAYER_RANGE(1, 1 << 30)},
 *         TP_LAYER_ROW_ACTIVATION(dense_args, activation),
 *         {0},
 *     };
 *
 * An argument that is not given keeps its default. null: a regularizer, a constraint, a list, a text or a
 * nested layer that is not there, a linear activation; the default where `may_be_null` is set; else a
 * mistake.
 */
#ifndef TP_MODEL_LAYER_ARG_H
#define TP_MODEL_LAYER_ARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/json.h"
#include "core/problems.h"

typedef struct tp_layer tp_layer;

typedef enum tp_layer_arg_kind {
    TP_LAYER_INT,        /* int64_t, min to max */
    TP_LAYER_NUMBER,     /* double, min to max */
    TP_LAYER_BOOL,       /* bool */
    TP_LAYER_CHOICE,     /* int32_t, index into `choices` */
    TP_LAYER_ACTIVATION, /* int32_t, tp_activation */
    TP_LAYER_TUPLE,      /* int64_t[count]: a number for all, or a list of `count`; min to max */
    TP_LAYER_PAIRS, /* int64_t[count][2]: a number for all, a list of a number (both sides) or of a
                             pair for each; count 1 takes the pair itself; min to max */
    TP_LAYER_INTS,  /* tp_layer_ints: a list, or a number as a list of one; min to max, a null in it
                             reads as -1 where min allows it */
    TP_LAYER_NUMBERS,     /* tp_layer_numbers: likewise, without null */
    TP_LAYER_TEXT,        /* const char * */
    TP_LAYER_INITIALIZER, /* tp_initializer */
    TP_LAYER_REGULARIZER, /* tp_regularizer */
    TP_LAYER_CONSTRAINT,  /* tp_constraint */
    TP_LAYER_NESTED,      /* tp_layer * */
} tp_layer_arg_kind;

typedef struct tp_layer_ints {
    const int64_t *items; /* NULL: not given */
    int32_t count;
} tp_layer_ints;

typedef struct tp_layer_numbers {
    const double *items; /* NULL: not given */
    int32_t count;
} tp_layer_numbers;

typedef struct tp_layer_arg {
    const char *name; /* Keras' */
    size_t offset;    /* of the field in the type's struct */
    tp_layer_arg_kind kind;
    bool is_required;
    bool may_be_null;
    double min, max;
    const char *const *choices;
    size_t choice_count;
    int32_t count; /* TUPLE, PAIRS: 1 to 3; INTS, NUMBERS: the most, 0: any number */
} tp_layer_arg;

#define TP_LAYER_REQUIRED .is_required = true
#define TP_LAYER_NULLABLE .may_be_null = true
#define TP_LAYER_RANGE(low, high) .min = (low), .max = (high)
#define TP_LAYER_CHOICES(names) .choices = (names), .choice_count = sizeof(names) / sizeof *(names)

/* Arguments that several types have, in fields that are named like them. */
#define TP_LAYER_ROW(type, field, field_kind)                                                      \
    .name = #field, .offset = offsetof(type, field), .kind = (field_kind)
#define TP_LAYER_ROW_BOOL(type, field)                                                             \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_BOOL)                                                   \
    }
#define TP_LAYER_ROW_NUMBER(type, field, low, high)                                                \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_NUMBER), TP_LAYER_RANGE(low, high)                      \
    }
#define TP_LAYER_ROW_ACTIVATION(type, field)                                                       \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_ACTIVATION)                                             \
    }
#define TP_LAYER_ROW_INITIALIZER(type, field)                                                      \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_INITIALIZER)                                            \
    }
#define TP_LAYER_ROW_REGULARIZER(type, field)                                                      \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_REGULARIZER)                                            \
    }
#define TP_LAYER_ROW_CONSTRAINT(type, field)                                                       \
    {                                                                                              \
        TP_LAYER_ROW(type, field, TP_LAYER_CONSTRAINT)                                             \
    }
#define TP_LAYER_ROW_DATA_FORMAT(type)                                                             \
    {                                                                                              \
        TP_LAYER_ROW(type, data_format, TP_LAYER_CHOICE), TP_LAYER_NULLABLE,                       \
            TP_LAYER_CHOICES(tp_data_format_names)                                                 \
    }
/* Members of a tp_layer_windows called `windows`; `n` spatial dimensions. */
#define TP_LAYER_ROW_WINDOWS(type, key, member, n)                                                 \
    {                                                                                              \
        key, offsetof(type, windows.member), TP_LAYER_TUPLE, TP_LAYER_RANGE(1, 1 << 20),           \
            .count = (n)                                                                           \
    }
#define TP_LAYER_ROW_PADDING(type)                                                                 \
    {                                                                                              \
        "padding", offsetof(type, windows.padding), TP_LAYER_CHOICE,                               \
            TP_LAYER_CHOICES(tp_padding_names)                                                     \
    }

typedef enum tp_padding_mode { TP_PADDING_VALID, TP_PADDING_SAME } tp_padding_mode;
extern const char *const tp_padding_names[2];     /* "valid", "same" */
extern const char *const tp_data_format_names[1]; /* "channels_last" */

/* One argument from its value; what is wrong is added to `problems`. */
void tp_layer_arg_read(const tp_json *value, const tp_layer_arg *arg, tp_arena *arena, void *args,
                       tp_problems *problems);

#endif
