/* SPDX-License-Identifier: Apache-2.0
 * Text of reduction kernels; vpu_reduce.c plans them. Private to those two files.
 *
 * Loops: x, y, z over the kept axes as in element-wise kernels; k over the reduced ones, row-major.
 */
#ifndef TP_COMPILE_VPU_REDUCE_TEXT_H
#define TP_COMPILE_VPU_REDUCE_TEXT_H

#include "compile/vpu_kernel.h"

#define TP_VPU_STRIP 32 /* columns that one turn of a column kernel keeps sums for, on CPUs */

typedef enum tp_reduce_form {
    TP_REDUCE_ROWS,    /* the reduced axis is contiguous: 128 lanes along k */
    TP_REDUCE_COLUMNS, /* a kept axis is contiguous: a strip of columns, lane after lane */
    TP_REDUCE_ARG,     /* argmax, argmin: one scan */
    TP_REDUCE_TREE     /* second launch of a long reduction: the balanced tree over its blocks */
} tp_reduce_form;

/* How one head combines. */
typedef struct tp_reduce_head {
    tp_node_id node;
    const char *type;         /* register type, "VF" */
    const char *identity;     /* "(VF)(0.0f)" */
    const char *combine;      /* "$0 + $1" */
    const char *finish;       /* "VPU_FLUSH($0)" */
    const char *partial_type; /* of scratch: "float", "int", "uint" */
    const char *key;          /* ARG: orders operands as int, "$0" */
    int32_t operand;          /* value in the body's ir */
    int32_t bound;            /* value in the epilogue's ir: the finished result */
} tp_reduce_head;

typedef struct tp_reduce_text {
    tp_reduce_form form;
    tp_vpu_ir *ir;
    tp_vpu_loops kept, reduced;
    tp_reduce_head *heads;
    int32_t head_count;
    bool is_long;        /* stores partial results, one per block of 8192 */
    int32_t kept_number; /* long: value that is the row-major number of the kept element */
    int64_t lanes;       /* a power of two, at most 128 */
    int64_t strip;
    const char *var_names[TP_IX_MAX_VARS];
    tp_vpu_coefs coefs;
} tp_reduce_text;

/* Operator, identity and so on of a reduce, argmax or argmin node. */
tpucl_status tp_reduce_head_init(const tp_graph *graph, tp_node_id node, tp_reduce_head *out_head);

tpucl_status tp_reduce_text_emit(tp_reduce_text *text, const char **out_source,
                                 const char **out_entry);

#endif
