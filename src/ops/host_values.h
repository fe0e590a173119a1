/* SPDX-License-Identifier: Apache-2.0
 * Elements of host tensors as f32, for evaluate functions: bf16 is widened on the way in and rounded on
 * the way out; f32 results are flushed.
 */
#ifndef TP_OPS_HOST_VALUES_H
#define TP_OPS_HOST_VALUES_H

#include "graph/opdef.h"
#include "num/bf16.h"

/* dtype must be f32 or bf16. */
static inline float tp_host_load(const tp_host_tensor *tensor, int64_t index)
{
    return tensor->dtype == TP_BF16 ? tp_bf16_to_f32(((const tp_bf16 *)tensor->data)[index])
                                    : ((const float *)tensor->data)[index];
}

static inline void tp_host_store(tp_host_tensor *tensor, int64_t index, float value)
{
    if (tensor->dtype == TP_BF16)
        ((tp_bf16 *)tensor->data)[index] = tp_bf16_from_f32(value);
    else
        ((float *)tensor->data)[index] = tp_flush(value);
}

#endif
