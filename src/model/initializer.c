/* SPDX-License-Identifier: Apache-2.0
 * Keras' weight initialisers: see initializer.h.
 */
#include "model/initializer.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum fan { FAN_NONE, FAN_IN, FAN_OUT_AND_IN } fan;

/* a, b: defaults of the two parameters, with their names; scaled kinds have none and use `scale`. */
typedef struct initializer_row {
    tp_init_kind kind;
    fan fan;
    double scale; /* variance = scale / fan */
    const char *a_name, *b_name;
    double a, b;
} initializer_row;

static const char *const names[] = {"zeros",          "ones",          "constant",
                                    "random_uniform", "random_normal", "glorot_uniform",
                                    "glorot_normal",  "he_uniform",    "he_normal",
                                    "lecun_uniform",  "lecun_normal",  "truncated_normal",
                                    "orthogonal"};
enum { NAME_COUNT = sizeof names / sizeof *names, ONES_BETWEEN = NAME_COUNT, ROW_COUNT };

static const initializer_row rows[ROW_COUNT] = {
    {TP_INIT_ZEROS, FAN_NONE, 0, NULL, NULL, 0, 0},
    {TP_INIT_ONES, FAN_NONE, 0, NULL, NULL, 0, 0},
    {TP_INIT_CONSTANT, FAN_NONE, 0, "value", NULL, 0, 0},
    {TP_INIT_UNIFORM, FAN_NONE, 0, "minval", "maxval", -0.05, 0.05},
    {TP_INIT_NORMAL, FAN_NONE, 0, "mean", "stddev", 0, 0.05},
    {TP_INIT_UNIFORM, FAN_OUT_AND_IN, 1, NULL, NULL, 0, 0},
    {TP_INIT_TRUNCATED_NORMAL, FAN_OUT_AND_IN, 1, NULL, NULL, 0, 0},
    {TP_INIT_UNIFORM, FAN_IN, 2, NULL, NULL, 0, 0},
    {TP_INIT_TRUNCATED_NORMAL, FAN_IN, 2, NULL, NULL, 0, 0},
    {TP_INIT_UNIFORM, FAN_IN, 1, NULL, NULL, 0, 0},
    {TP_INIT_TRUNCATED_NORMAL, FAN_IN, 1, NULL, NULL, 0, 0},
    {TP_INIT_TRUNCATED_NORMAL, FAN_NONE, 0, "mean", "stddev", 0, 0.05},
    {TP_INIT_ORTHOGONAL, FAN_NONE, 0, "gain", NULL, 1, 0},
    {TP_INIT_ONES_BETWEEN, FAN_NONE, 0, NULL, NULL, 0, 0}, /* has no name */
};

/* Standard deviation of a unit normal cut at two; Keras divides by it so that the cut one has the wanted
 * variance. */
#define TRUNCATED_STDDEV 0.87962566103423978

tp_initializer tp_initializer_default(const char *name)
{
    for (int32_t i = 0; i < NAME_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (tp_initializer){.type = i, .a = rows[i].a, .b = rows[i].b};
    return (tp_initializer){0};
}

tp_initializer tp_initializer_ones_between(int64_t first, int64_t end)
{
    return (tp_initializer){.type = ONES_BETWEEN, .a = (double)first, .b = (double)end};
}

static bool read_parameters(const tp_json *value, const initializer_row *row, tp_problems *problems,
                            tp_initializer *out)
{
    const char *keys[] = {"type", row->a_name, row->b_name};
    const size_t count = row->b_name ? 3 : row->a_name ? 2 : 1;
    const size_t before = problems->count;
    tp_problems_add_failed(problems, tp_json_check_keys(value, keys, count));
    if (row->a_name)
        tp_problems_add_failed(problems,
                               tp_json_get_double(value, row->a_name, -FLT_MAX, FLT_MAX, &out->a));
    if (row->b_name) {
        const double least = strcmp(row->b_name, "stddev") == 0 ? 0 : -FLT_MAX;
        tp_problems_add_failed(problems,
                               tp_json_get_double(value, row->b_name, least, FLT_MAX, &out->b));
    }
    return problems->count == before;
}

bool tp_initializer_read(const tp_json *value, tp_problems *problems, tp_initializer *out)
{
    const tp_json *type = value;
    if (value->kind == TP_JSON_OBJECT &&
        !tp_problems_add_failed(problems, tp_json_require(value, "type", TP_JSON_STRING, &type)))
        return false;
    size_t index;
    if (!tp_problems_add_failed(problems, tp_json_as_choice(type, names, NAME_COUNT, &index)))
        return false;
    *out = (tp_initializer){.type = (int32_t)index, .a = rows[index].a, .b = rows[index].b};
    return value->kind != TP_JSON_OBJECT || read_parameters(value, &rows[index], problems, out);
}

static double fan_of(fan kind, const tp_shape *shape)
{
    double field = 1, in = 1, out = 1;
    for (int i = 0; i < shape->rank - 2; i++)
        field *= (double)shape->dims[i];
    if (shape->rank > 0) in = out = (double)shape->dims[shape->rank - 1];
    if (shape->rank > 1) in = (double)shape->dims[shape->rank - 2];
    const double value = kind == FAN_IN ? field * in : field * (in + out) / 2;
    return value > 1 ? value : 1;
}

void tp_initializer_resolve(const tp_initializer *initializer, const tp_shape *shape,
                            tp_init_kind *out_kind, double *out_a, double *out_b)
{
    const initializer_row *row = &rows[initializer->type];
    *out_kind = row->kind;
    *out_a = initializer->a;
    *out_b = initializer->b;
    if (row->kind == TP_INIT_ORTHOGONAL)
        *out_b = shape->rank > 0 ? (double)shape->dims[shape->rank - 1] : 1;
    if (row->fan == FAN_NONE) return;
    const double variance = row->scale / fan_of(row->fan, shape);
    if (row->kind == TP_INIT_UNIFORM) {
        *out_b = sqrt(3 * variance);
        *out_a = -*out_b;
    } else {
        *out_a = 0;
        *out_b = sqrt(variance) / TRUNCATED_STDDEV;
    }
}
