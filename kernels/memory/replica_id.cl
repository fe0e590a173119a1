/* SPDX-License-Identifier: Apache-2.0
 * replica_id: dst[0] = the core's position in its replica group
 * computes  what the executor says of the wave's first core, and counts on
 * layout    one element
 * requires  the wave's cores stand together in the group
 * knobs     none
 * work      one work-item a core
 * numerics  integers
 * fallback  none needed
 */
#include "lib/platform.clh"
#include "lib/tensor.clh"

__kernel void replica_id(TP_TENSOR(uint, dst), const uint position, int grid_z, int chunk_x)
{
    if (get_global_id(0) == 0) *TP_AT(dst, TP_CORE(grid_z)) = position + TP_CORE(grid_z);
}
