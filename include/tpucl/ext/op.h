/* SPDX-License-Identifier: Apache-2.0
 * Ops that live outside this tree: the second tier of the API, which may change in a minor version. A caller
 * registers an op under a name, and tpucl_graph_apply then knows it like one of the library's own.
 *
 * There are two forms.
 *   compose   the op is graph code over other ops. Gradient, cost and proof are those of the ops that it is made
 *             of: a custom layer or loss under a name of its own. Nothing else is needed.
 *   kernel    the op has a rule for its type, an evaluation in plain C, which is its definition, an OpenCL C 1.2
 *             kernel with a rule for its launch, and (if training goes through it) a gradient as graph code.
 *             Before a device runs the kernel in a program, it has to give the evaluation's bits there, for the
 *             very types and attributes that are wanted, on made-up operands with NaNs, infinities, zeros of both
 *             signs and subnormals among them. The verdict is kept like those of the library's kernels; what
 *             fails is not run, and the compile call says so with the element and the bits.
 *
 * f32 results are flushed (subnormals become zeros of their sign): the library does so after `evaluate`, the
 * kernel says tp_flush(x). Sums need a fixed order. Kernels may use what kernels/lib has: TP_TENSOR and TP_AT
 * (lib/tensor.clh), tp_flush and the tp_math_ functions of the contract (num/exact_math.h), tp_bf16_to_f32 and
 * tp_bf16_from_f32 (lib/bf16.clh); contraction is off.
 *
 * Threads. Registration is for the process and comes before the first other call, or while no other thread uses
 * the library. Afterwards callbacks run on whatever thread builds, compiles or evaluates, several at once, and
 * must not keep state. Lifetime: the struct, its texts and lists are copied; `user` and the functions must stay
 * valid as long as the process uses the library. There is no way to take an op back. */
#ifndef TPUCL_EXT_OP_H
#define TPUCL_EXT_OP_H

#include <tpucl/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when the meaning of a field or callback changes. */
#define TPUCL_OP_VERSION 1

/* One use of an op: its attributes and the types of its operands. Borrowed for the callback. */
typedef struct tpucl_op_context tpucl_op_context;

TPUCL_API int32_t tpucl_op_input_count(const tpucl_op_context *context);
/* Type of operand `index`; index -1: of the result (not in `infer`, which decides it). An operand that does not
 * exist is f32 and has rank -1. */
TPUCL_API tpucl_dtype tpucl_op_dtype(const tpucl_op_context *context, int32_t index);
TPUCL_API tpucl_shape tpucl_op_shape(const tpucl_op_context *context, int32_t index);
/* Product of the dims. */
TPUCL_API int64_t tpucl_op_elements(const tpucl_op_context *context, int32_t index);
/* (Floats are f32 values.) The attribute's value, or `fallback` where it was not given or is of another kind. */
TPUCL_API int64_t tpucl_op_int(const tpucl_op_context *context, const char *name, int64_t fallback);
TPUCL_API double tpucl_op_float(const tpucl_op_context *context, const char *name, double fallback);
TPUCL_API const char *tpucl_op_text(const tpucl_op_context *context, const char *name,
                                    const char *fallback);
/* NULL and a count of 0 where it was not given. */
TPUCL_API const int64_t *tpucl_op_ints(const tpucl_op_context *context, const char *name,
                                       int32_t *out_count);
/* Fills the thread's error record and returns TPUCL_INVALID_ARGUMENT: `return tpucl_op_fail("...")` from a
 * callback. `message` says what was expected and found; it is copied. */
TPUCL_API tpucl_status tpucl_op_fail(const char *message);

/* A tensor in host memory, row-major, in its own dtype (bf16: uint16_t, pred: uint8_t). */
typedef struct tpucl_op_array {
    tpucl_dtype dtype;
    tpucl_shape shape;
    void *data;
} tpucl_op_array;

typedef struct tpucl_op_attribute {
    const char *name;
    tpucl_attribute_kind kind;
    bool is_optional;
} tpucl_op_attribute;

/* Arguments of a kernel behind its tensors: 32 bits each. */
typedef struct tpucl_op_scalar {
    bool is_float; /* then `f32` is passed as float, else `u32` as uint */
    uint32_t u32;
    float f32;
} tpucl_op_scalar;

enum { TPUCL_OP_MAX_SCALARS = 16, TPUCL_OP_OPTIONS_BYTES = 256 };

/* How a kernel is run for ONE core; filled with zeros before `launch` is called. The kernel is
 *     kernel void entry(TP_TENSOR(const T0, in0), ..., TP_TENSOR(T, out), scalars..., uint grid_z)
 * The grid's third dimension is global[2] times the cores of a wave: get_global_id(2) / grid_z is the core, which
 * goes into TP_AT(name, core), get_global_id(2) % grid_z the kernel's own z. Every element of `out` is written,
 * nothing else is. No barriers across work-groups; local[2] is 1 where local sizes are given. */
typedef struct tpucl_op_launch {
    size_t global[3];                     /* 1 or more each */
    size_t local[3];                      /* all 0: the driver chooses */
    char options[TPUCL_OP_OPTIONS_BYTES]; /* "-DWIDTH=4", macros only */
    tpucl_op_scalar scalars[TPUCL_OP_MAX_SCALARS];
    int32_t scalar_count;
} tpucl_op_launch;

/* Fill with tpucl_op_default(). Fields that the form does not need stay NULL. */
typedef struct tpucl_op {
    size_t struct_size;
    int32_t version;  /* TPUCL_OP_VERSION */
    const char *name; /* letters, digits, '_' and '.'; "mine.swish" clashes with nothing of ours */
    const char *doc;  /* a sentence; may be NULL */
    int32_t min_inputs, max_inputs; /* 1 to 8 */
    const tpucl_op_attribute *attributes;
    int32_t attribute_count; /* up to 16 */
    void *user;              /* first argument of every callback */

    /* Form "compose": the result as nodes of `graph`, which has the inputs. */
    tpucl_tensor (*compose)(void *user, const tpucl_op_context *context, tpucl_graph *graph,
                            const tpucl_tensor *inputs);

    /* Form "kernel". `infer` refuses operands by returning tpucl_op_fail(...). */
    tpucl_status (*infer)(void *user, const tpucl_op_context *context, tpucl_dtype *out_dtype,
                          tpucl_shape *out_shape);
    /* Fills out->data, which is allocated. */
    tpucl_status (*evaluate)(void *user, const tpucl_op_context *context,
                             const tpucl_op_array *inputs, const tpucl_op_array *out);
    const char *kernel_source; /* OpenCL C 1.2 */
    const char *kernel_entry;
    tpucl_status (*launch)(void *user, const tpucl_op_context *context,
                           tpucl_op_launch *out_launch);
    /* Nodes of the gradients: inputs and result as the op had them, d_result the gradient of the result. What is
     * left in d_inputs as it was (a tensor below zero) gets none. NULL: the op is not differentiable. */
    void (*gradient)(void *user, const tpucl_op_context *context, tpucl_graph *graph,
                     const tpucl_tensor *inputs, tpucl_tensor result, tpucl_tensor d_result,
                     tpucl_tensor *d_inputs);
    /* Floating-point operations of a call, for costs; NULL: one for each element of the result. */
    double (*flops)(void *user, const tpucl_op_context *context);
} tpucl_op;

static inline tpucl_op tpucl_op_default(void)
{
    tpucl_op op;
    memset(&op, 0, sizeof op);
    op.struct_size = sizeof op;
    op.version = TPUCL_OP_VERSION;
    op.min_inputs = op.max_inputs = 1;
    return op;
}

/* TPUCL_INVALID_ARGUMENT for a name that exists already (a second time as well as one of the library's), another
 * version, a form that is not complete; TPUCL_UNSUPPORTED beyond 64 ops. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_op_register(const tpucl_op *op);

#ifdef __cplusplus
}
#endif
#endif
