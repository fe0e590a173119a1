/* SPDX-License-Identifier: Apache-2.0
 * mxu_combine: adds the partial sums of a product that was cut into units, and finishes it
 * computes  C[z][m][n] = epilogue(sum over passes, in order, of the balanced tree over blocks of
 *           partial[pass * blocks + block][z][m][n])
 * layout    partial: f32, [passes * blocks][batch][M][N], dense
 * requires  OpenCL 1.2
 * knobs     COLUMNS   outputs per work-item along n, 1 or 16
 * work      global = ceil(n / COLUMNS), m, batch * cores
 * numerics  the contract's balanced tree over blocks; passes added first to last; flushed
 * fallback  none
 */
#include "mxu/operands.clh"
#ifndef TP_EPILOGUE_PARAMS
#include "mxu/epilogue_plain.clh"
#endif
#ifndef COLUMNS
#define COLUMNS 16
#endif

/* 2^31 / 8192 blocks need 18 levels. */
#define TREE_LEVELS 20

#define SUM_NAME combine_1
#define SUM_TYPE float
#define SUM_LOAD(ptr) (*(ptr))
#include "mxu/combine_sum.clh"
#define SUM_NAME combine_16
#define SUM_TYPE float16
#define SUM_LOAD(ptr) vload16(0, ptr)
#include "mxu/combine_sum.clh"

kernel void mxu_combine(TP_TENSOR(const float, partial), TP_EPILOGUE_PARAMS, uint size_m,
                        uint size_n, uint batch, uint grid_z, uint passes, uint blocks)
{
    const ulong core = get_global_id(2) / grid_z;
    const uint z = get_global_id(2) % grid_z;
    const uint n0 = get_global_id(0) * COLUMNS, m = get_global_id(1);
    if (m >= size_m || n0 >= size_n) return;
    const ulong unit_elems = (ulong)batch * size_m * size_n;
    global const float *src = TP_AT(partial, core) + ((ulong)z * size_m + m) * size_n + n0;
#if COLUMNS == 16
    if (n0 + 16 <= size_n) {
        const float16 value = tp_flush_v16(combine_16(src, unit_elems, passes, blocks));
        tp_epilogue_16(TP_EPILOGUE_PASS, core, z, m, n0, value);
        return;
    }
#endif
    for (uint i = 0; i < COLUMNS && n0 + i < size_n; i++)
        tp_epilogue_1(TP_EPILOGUE_PASS, core, z, m, n0 + i,
                      tp_flush(combine_1(src + i, unit_elems, passes, blocks)));
}
