/* SPDX-License-Identifier: Apache-2.0
 * Launches of generated VPU kernels. A kernel's tensors are named by graph node in the launches that
 * come out of here (tp_kernel_arg.tensor is a node id, or TP_VPU_SCRATCH); lowering puts the program's
 * buffers in their place.
 */
#ifndef TP_COMPILE_VPU_KERNEL_H
#define TP_COMPILE_VPU_KERNEL_H

#include "compile/vpu_emit.h"
#include "compile/vpu_loops.h"
#include "kernel/launch.h"
#include "kernel/mxu.h"
#include "topo/device_caps.h"

/* Generated kernels of one program that share a source: building one costs about as much as building
 * a dozen (PoCL: 0.1 s). Gives each distinct text among `launches` a VPU_ID, puts up to
 * TP_VPU_MODULE_KERNELS of them together with what they include, and rewrites source and entry of the
 * launches. `launches` are those of generated kernels only. */
#define TP_VPU_MODULE_KERNELS 16
tpucl_status tp_vpu_module_build(tp_arena *arena, tp_launch *const *launches, int32_t count);

/* What all generators need. */
typedef struct tp_vpu_target {
    tp_arena *arena;
    const tp_graph *graph;
    const bool *is_stored; /* per node */
    const tp_device_caps *caps;
} tp_vpu_target;

/* One element-wise cluster: computes and stores `roots`, which have equally many elements. */
tpucl_status tp_vpu_map_create(const tp_vpu_target *target, const tp_node_id *roots,
                               int32_t root_count, const char *label, tp_launch *out_launch);

/* Does some index divide by a constant inside the loops? Then the cluster is slow. */
tpucl_status tp_vpu_map_divides(const tp_vpu_target *target, const tp_node_id *roots,
                                int32_t root_count, bool *out_divides);

/* Does the cluster read `node` only at the element of `root` that the same turn of its loop stores? Then
 * `root` may be stored in the memory of `node`. */
tpucl_status tp_vpu_map_is_in_place(const tp_vpu_target *target, const tp_node_id *roots,
                                    int32_t root_count, tp_node_id root, tp_node_id node,
                                    bool *out_is_in_place);

#define TP_VPU_MAX_HEADS 8
#define TP_VPU_SCRATCH (-2) /* tensor of the partial results, between the two launches */

/* Reductions with equal operand shapes and equal axes, what is computed element by element before
 * them, and `roots`: the reductions themselves and what is computed from them, all as large as their
 * result. Long reductions take two launches and scratch memory. */
typedef struct tp_vpu_reduce_plan {
    tp_launch launches[2];
    int32_t launch_count;
    uint64_t scratch_bytes; /* per core where the launches are; 0: none */
} tp_vpu_reduce_plan;

tpucl_status tp_vpu_reduce_create(const tp_vpu_target *target, const tp_node_id *heads,
                                  int32_t head_count, const tp_node_id *roots, int32_t root_count,
                                  const char *label, tp_vpu_reduce_plan *out_plan);

/* The epilogue of product `head` [batch][m][n] that computes and stores `roots`. */
tpucl_status tp_vpu_epilogue_create(const tp_vpu_target *target, tp_node_id head, int64_t batch,
                                    int64_t m, int64_t n, const tp_node_id *roots,
                                    int32_t root_count, tp_mxu_epilogue *out_epilogue);

/* Can they be? Not when lanes along n would need gathers with divisions or guards. */
tpucl_status tp_vpu_epilogue_is_possible(const tp_vpu_target *target, tp_node_id head,
                                         int64_t batch, int64_t m, int64_t n,
                                         const tp_node_id *roots, int32_t root_count,
                                         bool *out_is_possible);

/* ---- shared by the generators ---- */

/* A growing list of kernel arguments. */
typedef struct tp_vpu_args {
    tp_arena *arena;
    tp_kernel_arg *items;
    int32_t count, capacity;
    tpucl_status status;
} tp_vpu_args;

void tp_vpu_args_add(tp_vpu_args *args, tp_kernel_arg arg);
void tp_vpu_args_add_int(tp_vpu_args *args, int64_t value);
/* The tensors of `ir`, in slot order. */
void tp_vpu_args_add_slots(tp_vpu_args *args, const tp_vpu_ir *ir);
/* The parameters and arguments behind the tensors: coefficients, random keys and step, as `ir` needs
 * them. Each parameter text ends with ", ". */
void tp_vpu_emit_extra_params(const tp_vpu_ir *ir, const tp_vpu_coefs *coefs, tp_str_builder *out);
/* The same names, to hand them on to a function. */
void tp_vpu_emit_extra_pass(const tp_vpu_ir *ir, const tp_vpu_coefs *coefs, tp_str_builder *out);
void tp_vpu_args_add_extra(tp_vpu_args *args, const tp_vpu_ir *ir, const tp_vpu_coefs *coefs);

/* Ends a builder; the text lives in `arena`. */
tpucl_status tp_vpu_finish_text(tp_str_builder *builder, tp_arena *arena, const char **out_text);

/* Elements are indexed by int where everything is small enough, else by long. */
const char *tp_vpu_index_type(const tp_vpu_ir *ir);

/* Bytes that the kernel reads and writes once, and its element-wise operations per element. */
double tp_vpu_ir_bytes(const tp_vpu_ir *ir);

/* Neighbours along the last loop that a kernel computes at once: TP_VPU_WIDE on CPUs where the values allow
 * it and both the loop and the `chunk` of it that a work-item runs are made of such groups, or 1. On GPUs the
 * neighbours are work-items; loops of other lengths are left to the compiler. */
#define TP_VPU_WIDE 16
int tp_vpu_width(const tp_device_caps *caps, const tp_vpu_ir *ir, const tp_vpu_loops *loops,
                 int64_t chunk);

/* How a loop nest of nx by ny by nz is cut into work-items. On CPUs each work-item runs a chunk of
 * about `target_elems`, because a work-item is a loop there anyway; elsewhere each has one element. */
typedef struct tp_vpu_grid {
    int64_t chunk_x, chunk_y;
    size_t global[3], local[3];
} tp_vpu_grid;
tp_vpu_grid tp_vpu_grid_plan(const tp_device_caps *caps, int64_t nx, int64_t ny, int64_t nz,
                             int64_t target_elems);

#endif
