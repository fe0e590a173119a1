/* SPDX-License-Identifier: Apache-2.0
 * The frequent ops by name. Each is a line or a few over tpucl_graph_apply, so nothing here can do
 * what a caller's own helper could not. Errors stick to the graph (graph.h). */
#ifndef TPUCL_OPS_H
#define TPUCL_OPS_H

#include <tpucl/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element by element. Shapes are equal, or `b`'s is the end of `a`'s (a bias [n] on [batch, n]), or
 * `b` is a scalar. */
TPUCL_API tpucl_tensor tpucl_add(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
TPUCL_API tpucl_tensor tpucl_subtract(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
TPUCL_API tpucl_tensor tpucl_multiply(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
TPUCL_API tpucl_tensor tpucl_divide(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
TPUCL_API tpucl_tensor tpucl_maximum(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
TPUCL_API tpucl_tensor tpucl_exp(tpucl_graph *graph, tpucl_tensor x);
TPUCL_API tpucl_tensor tpucl_log(tpucl_graph *graph, tpucl_tensor x);
TPUCL_API tpucl_tensor tpucl_tanh(tpucl_graph *graph, tpucl_tensor x);
TPUCL_API tpucl_tensor tpucl_sigmoid(tpucl_graph *graph, tpucl_tensor x);
TPUCL_API tpucl_tensor tpucl_relu(tpucl_graph *graph, tpucl_tensor x); /* gradient at 0 is 0 */

/* [m, k] x [k, n] -> [m, n] on the MXU: operands rounded to bf16, sums in f32. */
TPUCL_API tpucl_tensor tpucl_matmul(tpucl_graph *graph, tpucl_tensor a, tpucl_tensor b);
/* [batch, rows, columns, in] * [kernel rows, kernel columns, in, out], stride 1 or more in both
 * directions; `padding` is "same" or "valid". */
TPUCL_API tpucl_tensor tpucl_conv2d(tpucl_graph *graph, tpucl_tensor image, tpucl_tensor kernel,
                                    int64_t stride, const char *padding);
/* Largest value of each window of `size` x `size`, windows `size` apart, no padding. */
TPUCL_API tpucl_tensor tpucl_max_pool(tpucl_graph *graph, tpucl_tensor image, int64_t size);

/* Same elements in row-major order. */
TPUCL_API tpucl_tensor tpucl_reshape(tpucl_graph *graph, tpucl_tensor x, tpucl_shape shape);
/* x * factor + offset as f32, for any dtype of x: pixels to floats is tpucl_scale(g, image, 1 /
 * 255.0, 0). */
TPUCL_API tpucl_tensor tpucl_scale(tpucl_graph *graph, tpucl_tensor x, double factor,
                                   double offset);
TPUCL_API tpucl_tensor tpucl_convert(tpucl_graph *graph, tpucl_tensor x, tpucl_dtype dtype);
/* One value per example, [batch] f32, as tpucl_graph_minimize and tpucl_graph_metric want them.
 * `logits` is [batch, classes] f32, `labels` [batch] s32 from 0 to classes - 1;
 * another one counts as if its logit were the largest. */
TPUCL_API tpucl_tensor tpucl_softmax_cross_entropy(tpucl_graph *graph, tpucl_tensor logits,
                                                   tpucl_tensor labels);
/* 1 where the largest logit is the label's, else 0: its mean is the accuracy. */
TPUCL_API tpucl_tensor tpucl_is_correct(tpucl_graph *graph, tpucl_tensor logits,
                                        tpucl_tensor labels);
/* Mean over everything but the batch. */
TPUCL_API tpucl_tensor tpucl_mean_squared_error(tpucl_graph *graph, tpucl_tensor prediction,
                                                tpucl_tensor target);

/* A loop over the first axis of some tensors, compiled once and run step by step: recurrent layers.
 * `body` is called once, at once. It gets the carries (what the step before left; `init` in the first
 * step) and this step's slices, and says what the carries become, of the same types, and what is
 * stacked. What it makes of other tensors alone is computed once, in front of the loop. Loops do not
 * nest. */
typedef void (*tpucl_scan_body)(void *user, tpucl_graph *graph, const tpucl_tensor *carries,
                                const tpucl_tensor *slices, tpucl_tensor *next,
                                tpucl_tensor *stacked);
typedef struct tpucl_scan_options {
    size_t struct_size;
    int64_t length;                                /* steps, 1 or more */
    const tpucl_tensor *init;                      /* [carry_count] */
    const tpucl_tensor *xs;                        /* [input_count], each [length, ...] */
    int32_t carry_count, input_count, stack_count; /* up to 32 each */
    bool reverse; /* from the last slice to the first; stacks keep the order of xs */
    tpucl_scan_body body;
    void *user;
} tpucl_scan_options;

static inline tpucl_scan_options tpucl_scan_options_default(void)
{
    tpucl_scan_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

/* out_last[carry_count]: the carries after the last step. out_stacks[stack_count]: [length, ...].
 * Either may be NULL when its count is 0. */
TPUCL_API void tpucl_scan(tpucl_graph *graph, const tpucl_scan_options *options,
                          tpucl_tensor *out_last, tpucl_tensor *out_stacks);

#ifdef __cplusplus
}
#endif
#endif
