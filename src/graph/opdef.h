/* SPDX-License-Identifier: Apache-2.0
 * What an op must provide. One file per family in ops/ fills these in; everything else (inference,
 * autodiff, compile, reference) works from this table and from traits, not from op names.
 */
#ifndef TP_GRAPH_OPDEF_H
#define TP_GRAPH_OPDEF_H

#include "graph/graph.h"

typedef enum tp_op_class {
    TP_OP_SOURCE,      /* input, variable, constant, iota, step: no inputs */
    TP_OP_ELEMENTWISE, /* result element i depends on element i of each input; all shapes equal */
    TP_OP_RANDOM,      /* element-wise source keyed by (seed, stream, core, step); recomputed, never
                          stored */
    TP_OP_BROADCAST,   /* broadcast_in_dim */
    TP_OP_RESHAPE,     /* same elements in row-major order */
    TP_OP_REINDEX, /* transpose, slice, pad, reverse, concatenate: each result element reads <= 1
                        element of some input */
    TP_OP_REDUCE,  /* VPU reduction over attr `axes` by attr `kind` */
    TP_OP_WINDOW,  /* reduce_window and its gradients */
    TP_OP_MEMORY,  /* gather, scatter, dynamic slices, cumulative, sort, attention: own kernels over
                       memory */
    TP_OP_MXU,     /* dot_general, convolution and its gradients */
    TP_OP_COLLECTIVE, /* all_reduce, all_gather, reduce_scatter, collective_permute */
    TP_OP_LOOP        /* loop_slice and its kin: where values enter and leave a loop */
} tp_op_class;

/* What an op of class TP_OP_LOOP is to its loop, see graph/loop.h. */
typedef enum tp_loop_part {
    TP_LOOP_NONE,  /* every other op */
    TP_LOOP_SLICE, /* in the loop: the turn's part of a tensor */
    TP_LOOP_CARRY, /* in the loop: what the turn before left */
    TP_LOOP_LAST,  /* outside: what the last turn left in a carry */
    TP_LOOP_STACK  /* outside: a value of all turns */
} tp_loop_part;

/* A tensor in host memory, as the reference interpreter holds it: row-major, native dtype. */
typedef struct tp_host_tensor {
    tp_dtype dtype;
    tp_shape shape;
    void *data;
} tp_host_tensor;

/* What an evaluation may depend on besides its inputs. */
typedef struct tp_eval_context {
    uint64_t seed;
    uint32_t core, step;
    int64_t turn;      /* of the loop that the op belongs to, from 0 */
    uint32_t position; /* of the core in its replica group */
} tp_eval_context;

/* One attribute that an op takes. tp_graph_add() refuses attributes that are not listed, of another
 * kind, missing, or not among the choices, so that rules may rely on all of that. */
typedef struct tp_attr_spec {
    const char *name;
    tp_attr_kind kind;
    bool is_optional;
    const char *choices; /* TEXT: "add|max|min"; NULL: any text */
    const char *doc;     /* for docs/ops.md */
} tp_attr_spec;

/* How the kernel of an op from outside is run for one core: see include/tpucl/ext/op.h. */
typedef struct tp_external_launch {
    size_t global[3], local[3];
    char options[256];
    struct {
        bool is_float;
        uint32_t u32;
        float f32;
    } scalars[16];
    int32_t scalar_count;
} tp_external_launch;

/* What an op from outside brings along for its lowering: class TP_OP_MEMORY. */
typedef struct tp_external_op {
    const char *source, *entry;
    /* From the node and the types of its operands. */
    tpucl_status (*launch)(const tp_graph *graph, const tp_node *node,
                           tp_external_launch *out_launch);
} tp_external_op;

struct tp_opdef {
    const char *name; /* StableHLO's name where it has the op */
    tp_op_class op_class;
    tp_loop_part loop_part; /* TP_OP_LOOP only */
    int32_t min_inputs, max_inputs;
    const char *doc;           /* one sentence for docs/ops.md */
    const tp_attr_spec *attrs; /* ends with a NULL name; NULL: the op takes none */

    const tp_external_op *external; /* NULL for the ops of this tree */

    /* The result's dtype and shape from inputs and attributes; fails with a sentence naming the
     * shapes. */
    tpucl_status (*infer)(const tp_graph *graph, const tp_node *node, tp_dtype *out_dtype,
                          tp_shape *out_shape);

    /* Appends nodes for the gradients. d_inputs[i] is set to a node, or left TP_NO_NODE where there
     * is none. NULL: not differentiable (its inputs get no gradient through it). */
    void (*gradient)(tp_graph *graph, tp_node_id node, tp_node_id d_result, tp_node_id *d_inputs);

    /* The contract, on the host: fills out->data (allocated by the caller). f32 results are
     * flushed. */
    tpucl_status (*evaluate)(const tp_node *node, const tp_host_tensor *inputs,
                             const tp_eval_context *context, tp_host_tensor *out);

    /* ELEMENTWISE and RANDOM only: the value as an expression over kernels/lib/vpu.clh, with $0,
     * $1, ... for the operands; e.g. "$0 + $1", "EM(math_exp)($0)", "VPU_SELECT($0, $1, $2)". May
     * differ by operand dtype. Static, or in the graph's arena. NULL, with the error recorded,
     * when a dtype is not supported. See "Expressions" below. */
    const char *(*vpu)(const tp_graph *graph, const tp_node *node);
    /* The result differs from core to core whatever the operands are: replica_id, the collectives that
     * give each core its own. (Random ops and inputs do as well, without saying so.) */
    bool depends_on_core;
    /* RANDOM only: the same numbers on every core. */
    bool is_equal_on_cores;
    /* The f32 result of `vpu` needs a flush (add, multiply, ...; never compare, select, negate). */
    bool may_make_subnormal;

    /* Floating-point operations per call, for cost and bench (2 per multiply-add). NULL: one per
     * element. */
    double (*flops)(const tp_graph *graph, const tp_node *node);
};

/* Expressions. In registers f32 and bf16 are VF (bf16 already rounded), s32 VI, u32 and u8 VU,
 * pred a VI mask (0 or -1, in scalars too). The generator puts parentheses around what it
 * substitutes for an operand. Besides the operators + - * & | ^ ~ of OpenCL C and casts of
 * literals ((VF)(1.0f)), ops use
 *     EM(name)(x), EM(name)(x, y)   the functions of num/exact_math.h: EM(math_exp), EM(vpu_max),
 *                                   ...
 *     VPU_SELECT(mask, a, b)        a where the mask is set; a and b VF, VI or VU
 *     VPU_EQ NE LT LE GT GE (a, b)  VF, VI or VU operands of one type; gives a mask
 *     VPU_AS_VI(x), VPU_AS_VU(x), VPU_AS_VF(x)   the same bits
 * A convert to bf16, like every other op with a bf16 result, gives the f32 value; the generator
 * rounds it to bf16, as it flushes f32 results where may_make_subnormal says so. RANDOM ops have
 * no operands and use, with the op's stream as a literal,
 *     VPU_RANDOM_BITS(stream)       VU: Philox word of this element, see num/philox.h
 *     VPU_RANDOM_SHARED_BITS(stream) the same with the same word on every core
 *     VPU_RANDOM_UNIFORM(stream)    VF in [0, 1)
 *     VPU_RANDOM_NORMAL(stream)     VF */

/* Finds a definition by name; NULL when there is none. */
const tp_opdef *tp_op_table_find(const tp_op_table *table, const char *name);

#endif
