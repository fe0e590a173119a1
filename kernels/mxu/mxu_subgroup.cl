/* SPDX-License-Identifier: Apache-2.0
 * mxu_subgroup: C[z][m][n] = epilogue(sum over k of A[z][m][k] * B[z][k][n])
 * computes  every kind of product; the work-items of a sub-group hold a slice of A in registers, one k each, and
 *           hand it to each other, while each reads its own columns of B
 * layout    A and B as they are (operands.clh)
 *
 *                    SUBGROUP * COLUMNS columns; those of an item are SUBGROUP apart, so that neighbours
 *                  +---------------------+      read neighbouring floats
 *           TILE_M | sums in registers   |
 *                  +---------------------+
 *
 * requires  sub-groups of SUBGROUP work-items, which a kernel may ask for (cl_intel_required_subgroup_size)
 * knobs     SUBGROUP       work-items of a sub-group, and of a work-group; divides 128
 *           TILE_M         rows
 *           COLUMNS        columns of a work-item
 *           SUBGROUP_IS_EMULATED   1: the slice goes through local memory, TILE_M * SUBGROUP floats, for devices
 *                          without; it checks everything but the exchange
 * work      local = SUBGROUP; groups = ceil(n / (SUBGROUP * COLUMNS)), ceil(m / TILE_M), units * batch * cores
 * numerics  chunk sums from +0 in rising k, chunks added in rising order; units by mxu_combine
 * fallback  mxu_local
 */
#ifndef SUBGROUP
#define SUBGROUP 16
#endif
#ifndef TILE_M
#define TILE_M 8
#endif
#ifndef COLUMNS
#define COLUMNS 2
#endif
#ifndef SUBGROUP_IS_EMULATED
#define SUBGROUP_IS_EMULATED 1
#endif
#include "mxu/operands.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif

#define TILE_N (SUBGROUP * COLUMNS)
#if SUBGROUP_IS_EMULATED
#define SUBGROUP_KERNEL
#define LANE ((uint)get_local_id(0))
/* What lane `from` has in values[i]. */
#define BROADCAST(values, i, from) shared[(i)*SUBGROUP + (from)]
#else
#define SUBGROUP_KERNEL __attribute__((intel_reqd_sub_group_size(SUBGROUP)))
#define LANE ((uint)get_sub_group_local_id())
#define BROADCAST(values, i, from) sub_group_broadcast((values)[i], from)
#endif

kernel __attribute__((reqd_work_group_size(SUBGROUP, 1, 1))) SUBGROUP_KERNEL void
mxu_subgroup(TP_TENSOR(const mxu_a_t, a), TP_TENSOR(const mxu_b_t, b), TP_EPILOGUE_PARAMS, MXU_PARAMS,
             local float *shared)
{
    const uint lane = LANE;
    const uint n0 = get_group_id(0) * TILE_N, m0 = get_group_id(1) * TILE_M;
    const mxu_place place = mxu_find_place(get_global_id(2), grid_z, batch, size_k);
    const uint a_part = MXU_A_PART(place.pass), b_part = MXU_B_PART(place.pass);
    global const mxu_a_t *a_ptr = TP_AT(a, place.core) + place.entry * a_stride_batch;
    global const mxu_b_t *b_ptr = TP_AT(b, place.core) + place.entry * b_stride_batch;

    float block[TILE_M][COLUMNS];
    for (uint i = 0; i < TILE_M; i++)
        for (uint j = 0; j < COLUMNS; j++)
            block[i][j] = 0.0f;

    for (uint chunk_k = place.k_begin; chunk_k < place.k_end; chunk_k += MXU_CHUNK) {
        const uint chunk_end = min(chunk_k + MXU_CHUNK, place.k_end);
        float chunk[TILE_M][COLUMNS];
        for (uint i = 0; i < TILE_M; i++)
            for (uint j = 0; j < COLUMNS; j++)
                chunk[i][j] = 0.0f;
        for (uint slice_k = chunk_k; slice_k < chunk_end; slice_k += SUBGROUP) {
            float slice[TILE_M];
            for (uint i = 0; i < TILE_M; i++)
                slice[i] = m0 + i < size_m && slice_k + lane < chunk_end
                               ? mxu_a_value(MXU_GEO a_ptr, m0 + i, slice_k + lane, a_stride_outer,
                                             a_stride_inner, a_part)
                               : 0.0f;
#if SUBGROUP_IS_EMULATED
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = 0; i < TILE_M; i++)
                shared[i * SUBGROUP + lane] = slice[i];
            barrier(CLK_LOCAL_MEM_FENCE);
#endif
            /* exactly the k that exist: a product 0 * 0 too many could turn a sum of -0 into +0 */
            const uint steps = min((uint)SUBGROUP, chunk_end - slice_k);
            for (uint k = 0; k < steps; k++) {
                float column[COLUMNS];
                for (uint j = 0; j < COLUMNS; j++) {
                    const uint n = n0 + j * SUBGROUP + lane;
                    column[j] = n < size_n ? mxu_b_value(MXU_GEO b_ptr, slice_k + k, n, b_stride_outer,
                                                         b_stride_inner, b_part)
                                           : 0.0f;
                }
                for (uint i = 0; i < TILE_M; i++) {
                    const float factor = BROADCAST(slice, i, k);
                    for (uint j = 0; j < COLUMNS; j++)
                        chunk[i][j] = MXU_FMA(factor, column[j], chunk[i][j]);
                }
            }
        }
        for (uint i = 0; i < TILE_M; i++)
            for (uint j = 0; j < COLUMNS; j++)
                block[i][j] = chunk_k == place.k_begin ? chunk[i][j] : block[i][j] + chunk[i][j];
    }
    for (uint i = 0; i < TILE_M; i++)
        for (uint j = 0; j < COLUMNS; j++) {
            const uint m = m0 + i, n = n0 + j * SUBGROUP + lane;
            if (m < size_m && n < size_n)
                tp_epilogue_1(TP_EPILOGUE_PASS, place.core, place.z, m, n, MXU_FINISH(block[i][j]));
        }
}
