/* SPDX-License-Identifier: Apache-2.0
 * Text of reduction kernels; vpu_reduce.c plans them. Private to those two files.
 *
 * Loops: x, y, z over the kept axes as in element-wise kernels; k over the reduced ones, row-major.
 */
#ifndef TP_COMPILE_VPU_REDUCE_TEXT_H
#define TP_COMPILE_VPU_REDUCE_TEXT_H

#include "compile/vpu_kernel.h"

typedef enum tp_reduce_form {
    TP_REDUCE_ROWS,    /* the reduced axis is contiguous: 128 lanes along k */
    TP_REDUCE_GROUP,   /* the same on GPUs: a work-group of 128 per result, lanes are work-items */
    TP_REDUCE_COLUMNS, /* a kept axis is contiguous: columns, some lanes after others */
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
    int width;           /* columns: neighbours that are summed up at once, 1 or TP_VPU_WIDE */
    int64_t
        columns; /* of a work-item at most, whose lanes are summed up side by side; 0: one by one */
    const char *var_names[TP_IX_MAX_VARS];
    tp_vpu_coefs coefs;
} tp_reduce_text;

/* Operator, identity and so on of a reduce, argmax or argmin node. */
tpucl_status tp_reduce_head_init(const tp_graph *graph, tp_node_id node, tp_reduce_head *out_head);

tpucl_status tp_reduce_text_emit(tp_reduce_text *text, const char **out_source,
                                 const char **out_entry);

/* ---- shared by the forms ---- */

/* For columns x0 to x1. */
tpucl_status tp_reduce_columns_emit(tp_reduce_text *text, tp_str_builder *out);
/* `text` with $0 and $1 replaced by a and b. */
void tp_reduce_emit_combined(const char *text, const char *a, const char *b, tp_str_builder *out);
/* "target = combine(a, b);" for every head; # in the three is the head's number. */
void tp_reduce_emit_step(const tp_reduce_text *text, const char *indent, const char *target,
                         const char *a, const char *b, tp_str_builder *out);
/* Takes `number` apart into the first `end` variables of a list. */
void tp_reduce_emit_indexes(const tp_reduce_text *text, const tp_vpu_loops *loops, int32_t end,
                            const char *number, const char *indent, tp_str_builder *out);
/* The same for k and the reduced axes. */
void tp_reduce_emit_reduced_indexes(const tp_reduce_text *text, const char *indent,
                                    tp_str_builder *out);
/* Declares the values that the heads reduce. */
tpucl_status tp_reduce_emit_operands(tp_reduce_text *text, const char *indent, tp_str_builder *out);
/* Results in `source` (# is the head's number): finishes them into r0, r1, ..., computes the roots from
 * them and stores those; or stores them as partial results of this block. */
tpucl_status tp_reduce_emit_results(tp_reduce_text *text, const char *indent, const char *source,
                                    tp_str_builder *out);

#endif
