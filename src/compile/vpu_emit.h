/* SPDX-License-Identifier: Apache-2.0
 * Prints values of a kernel body as OpenCL C in the words of kernels/lib/vpu.clh. The text holds no
 * name of the graph and, where it costs nothing, no size of a tensor: those become int parameters, so
 * that clusters of the same form share one source and are built once.
 */
#ifndef TP_COMPILE_VPU_EMIT_H
#define TP_COMPILE_VPU_EMIT_H

#include "compile/vpu_ir.h"
#include "core/str.h"

#define TP_VPU_MAX_COEFS 24

/* Coefficients that became parameters vpu_c0, vpu_c1, ... */
typedef struct tp_vpu_coefs {
    int64_t values[TP_VPU_MAX_COEFS];
    char names[TP_VPU_MAX_COEFS][8];
    int32_t count;
} tp_vpu_coefs;

/* Of a cache, on the processors in use; of another length, some lines are asked for twice or not at all. */
#define TP_VPU_LINE_BYTES 64

/* The callback of tp_ix_print; `user` is a tp_vpu_coefs. Digits when the table is full. */
const char *tp_vpu_coef_name(void *user, int64_t coef);

typedef struct tp_vpu_style {
    int width;        /* 1 or 16 lanes */
    int32_t lane_var; /* 16: the loop variable along the lanes */
    const char *const *var_names;
    tp_vpu_coefs *coefs; /* NULL: all coefficients are digits */
    const char *indent;
} tp_vpu_style;

/* The words of lib/vpu_words.clh in this width, from here on. */
void tp_vpu_emit_words(int width, tp_str_builder *out);

const char *tp_vpu_register_type(tp_dtype dtype); /* "VF", "VI", "VU" */
const char *tp_vpu_storage_type(tp_dtype dtype);  /* "float", "ushort", ... */

/* Declares value `wanted` and what it needs, except what out_done (one per value) says is declared.
 * Value i is named v<i>, tensor slot s is p<s>. */
void tp_vpu_emit_value(const tp_vpu_ir *ir, const tp_vpu_style *style, int32_t wanted,
                       bool *inout_done, tp_str_builder *out);

/* p<slot>[index] = v<value>. */
void tp_vpu_emit_store(const tp_vpu_ir *ir, const tp_vpu_style *style, const tp_vpu_store *store,
                       tp_str_builder *out);

/* May the values be computed 16 lanes at a time along `var`? Not when an index divides by it or a
 * guard depends on it. */
bool tp_vpu_can_widen(const tp_vpu_ir *ir, int32_t var);

/* "TP_TENSOR(float, vpu_t0), TP_TENSOR(ushort, vpu_t1), " for all slots, and the declarations of p0, p1... */
void tp_vpu_emit_params(const tp_vpu_ir *ir, tp_str_builder *out);
/* "TP_TENSOR_PASS(vpu_t0), ...": the same names, to hand them on to a function. */
void tp_vpu_emit_pass(const tp_vpu_ir *ir, tp_str_builder *out);
void tp_vpu_emit_pointers(const tp_vpu_ir *ir, const char *indent, const char *core,
                          tp_str_builder *out);

#endif
