/* SPDX-License-Identifier: Apache-2.0
 * Inside kernel/: what the variants with a register tile share, mxu_register and mxu_pairs.
 */
#ifndef TP_KERNEL_MXU_REGISTER_H
#define TP_KERNEL_MXU_REGISTER_H

#include "kernel/mxu_plan.h"

/* How a product is cut: kernels/mxu/mxu_register.cl has the picture. */
typedef struct tp_mxu_tile {
    int rows, vector_width, vectors, columns; /* columns = vectors * vector_width */
    bool panel_by_row, panel_is_packed, b_is_packed;
    bool by_phase; /* mxu_pairs: rows of a strided input gradient by phase */
    int64_t panels, tiles, panel_chunks, panel_bytes;
} tp_mxu_tile;

/* For vectors of `vector_width` floats where no choice says another width. */
tp_mxu_tile tp_mxu_choose_tile(const tp_mxu_builder *builder, int vector_width);
/* 4, 8 or 16: what the device's registers hold. */
int tp_mxu_native_width(const tp_device_caps *caps);

/* Parts of the work-groups' second dimension: how many share the tiles of a panel. */
int64_t tp_mxu_choose_shares(const tp_mxu_builder *builder, const tp_mxu_tile *t);

/* Adds the scratch and the launch that pack B, as f32 or in pairs (kernels/mxu/pairs.clh). */
tpucl_status tp_mxu_pack_b(tp_mxu_builder *builder, const tp_mxu_tile *t, bool in_pairs,
                           int32_t *out_tensor);
double tp_mxu_packed_b_bytes(const tp_mxu_problem *problem, const tp_mxu_tile *t, bool in_pairs);

/* Why packing does not pay, or NULL. */
tpucl_status tp_mxu_check_small(const tp_mxu_builder *builder, const char **out_reason);

#endif
