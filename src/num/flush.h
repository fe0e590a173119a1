/* SPDX-License-Identifier: Apache-2.0
 * The contract has no subnormals: what comes from outside (data, inputs, saved parameters) is flushed
 * once, where it enters, and is a value like any other from there on. */
#ifndef TP_NUM_FLUSH_H
#define TP_NUM_FLUSH_H

#include "num/bf16.h"
#include "num/dtype.h"

/* Subnormals of `elems` elements become zeros of their sign; integers stay as they are. */
static inline void tp_flush_array(tp_dtype dtype, void *inout_elements, uint64_t elems)
{
    if (dtype == TP_F32) {
        float *values = inout_elements;
        for (uint64_t i = 0; i < elems; i++)
            values[i] = tp_flush(values[i]);
    } else if (dtype == TP_BF16) {
        tp_bf16 *values = inout_elements;
        for (uint64_t i = 0; i < elems; i++)
            values[i] = tp_bf16_flush(values[i]);
    }
}

#endif
