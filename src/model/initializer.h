/* SPDX-License-Identifier: Apache-2.0
 * Keras' weight initialisers by name: "glorot_uniform" or {"type": "random_normal", "stddev": 0.1}.
 * Variance scaling (keras/initializers/random_initializers.py, after Glorot & Bengio 2010 and He et al.
 * 2015) with fan_in and fan_out = the kernel's last two dimensions times the other ones.
 */
#ifndef TP_MODEL_INITIALIZER_H
#define TP_MODEL_INITIALIZER_H

#include "core/json.h"
#include "core/problems.h"
#include "num/init.h"
#include "num/shape.h"

typedef struct tp_initializer {
    int32_t type; /* index into the table of initializer.c */
    double a, b;  /* constant: a = value; uniform: minval, maxval; normal: mean, stddev;
                     orthogonal: a = gain */
} tp_initializer;

/* By name; NULL-terminated names for messages. `name` must be one of the table. */
tp_initializer tp_initializer_default(const char *name);

/* 1 for elements first .. end - 1, 0 for others: the bias of an LSTM's forget gate. */
tp_initializer tp_initializer_ones_between(int64_t first, int64_t end);

/* Reads a string or an object; false after adding what is wrong to `problems`. */
bool tp_initializer_read(const tp_json *value, tp_problems *problems, tp_initializer *out);

/* What a variable of this shape starts from. */
void tp_initializer_resolve(const tp_initializer *initializer, const tp_shape *shape,
                            tp_init_kind *out_kind, double *out_a, double *out_b);

#endif
