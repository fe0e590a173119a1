/* SPDX-License-Identifier: Apache-2.0
 * Bulk conversions. The loops are branch-free, so that the compiler vectorises them.
 */
#include "num/bf16.h"

void tp_bf16_from_f32_array(const float *restrict src, tp_bf16 *restrict dst, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = tp_bf16_from_f32(src[i]);
}

void tp_bf16_to_f32_array(const tp_bf16 *restrict src, float *restrict dst, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = tp_bf16_to_f32(src[i]);
}
