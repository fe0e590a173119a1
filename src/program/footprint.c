/* SPDX-License-Identifier: Apache-2.0
 * See footprint.h.
 */
#include "program/footprint.h"

uint64_t tp_add_bytes(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t tp_multiply_bytes(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t sum_segments(const uint64_t *segment_bytes, int32_t count)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum = tp_add_bytes(sum, segment_bytes[i]);
    return sum;
}

void tp_program_footprint(const tp_program *program, int32_t infeed_depth, int32_t results_depth,
                          tp_footprint *out_footprint)
{
    const uint64_t depth = (uint64_t)infeed_depth;
    *out_footprint = (tp_footprint){
        .core = sum_segments(program->core_bytes, program->core_slab_segments),
        .replicated = sum_segments(program->replicated_bytes, program->replicated_slab_segments),
        .infeed = tp_multiply_bytes(depth, program->input_bytes),
        .outfeed = tp_multiply_bytes(depth, program->output_bytes),
        .results = tp_multiply_bytes((uint64_t)results_depth, program->result_bytes),
        .constants = program->constant_bytes};
    for (int32_t i = 0; i < program->variable_count; i++)
        out_footprint->variables =
            tp_add_bytes(out_footprint->variables, program->variables[i].bytes);
}

uint64_t tp_footprint_bytes(const tp_footprint *footprint)
{
    const uint64_t parts[] = {footprint->core,     footprint->replicated, footprint->variables,
                              footprint->infeed,   footprint->outfeed,    footprint->results,
                              footprint->constants};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum = tp_add_bytes(sum, parts[i]);
    return sum;
}
