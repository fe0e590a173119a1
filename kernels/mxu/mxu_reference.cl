/* SPDX-License-Identifier: Apache-2.0
 * mxu_reference: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product at every precision, one output per work-item, in the words of the
 *           contract: the definition that the other variants are held against
 * layout    A and B as they are (operands.clh); C is the epilogue's
 * requires  OpenCL 1.2
 * knobs     none
 * work      global = n, m, batch * cores; local is the driver's choice
 * numerics  chunks of 128 from +0, blocks of 8192, balanced tree, passes in order, flushed
 * fallback  none: it takes everything
 */
#include "mxu/operands.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif

/* 2^31 / 8192 blocks need 18 levels. */
#define TREE_LEVELS 20

static inline float product(MXU_GEO_PARAM global const mxu_a_t *a, global const mxu_b_t *b, uint m, uint n,
                            uint size_k, ulong a_stride_outer, ulong a_stride_inner,
                            ulong b_stride_outer, ulong b_stride_inner, uint pass)
{
    float level[TREE_LEVELS];
    uint blocks = 0;
    for (uint block_k = 0; block_k < size_k; block_k += MXU_BLOCK) {
        const uint block_end = min(size_k, block_k + MXU_BLOCK);
        float block = 0.0f;
        for (uint chunk_k = block_k; chunk_k < block_end; chunk_k += MXU_CHUNK) {
            const uint chunk_end = min(block_end, chunk_k + MXU_CHUNK);
            float chunk = 0.0f;
            for (uint k = chunk_k; k < chunk_end; k++)
                chunk = MXU_FMA(
                    mxu_a_value(MXU_GEO a, m, k, a_stride_outer, a_stride_inner, MXU_A_PART(pass)),
                    mxu_b_value(MXU_GEO b, k, n, b_stride_outer, b_stride_inner, MXU_B_PART(pass)), chunk);
            block = chunk_k == block_k ? chunk : block + chunk;
        }
        /* As a binary counter: level i holds the finished sum of 2^i blocks. */
        uint i = 0;
        for (; (blocks >> i) & 1u; i++)
            block = level[i] + block;
        level[i] = block;
        blocks++;
    }
    if (blocks == 0) return 0.0f;
    uint i = 0;
    while (((blocks >> i) & 1u) == 0u)
        i++;
    float sum = level[i];
    for (i++; (blocks >> i) != 0u; i++)
        if ((blocks >> i) & 1u) sum = level[i] + sum;
    return sum;
}

kernel void mxu_reference(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b),
                          TP_EPILOGUE_PARAMS, MXU_PARAMS, local float *unused)
{
    const uint n = get_global_id(0), m = get_global_id(1);
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    if (n >= size_n || m >= size_m) return;
    global const mxu_a_t *a_ptr =
        TP_AT(a, place.core) + place.entry * a_stride_batch + mxu_group_channel(MXU_GEO n);
    global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch;
    float sum = 0.0f;
    for (uint pass = 0; pass < MXU_PASSES; pass++) {
        const float term = product(MXU_GEO a_ptr, b_ptr, m, n, size_k, a_stride_outer, a_stride_inner,
                                   b_stride_outer, b_stride_inner, pass);
        sum = pass == 0 ? term : sum + term;
    }
    tp_epilogue_1(TP_EPILOGUE_PASS, place.core, place.z, m, n, tp_flush(sum));
}
