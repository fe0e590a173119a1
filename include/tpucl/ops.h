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

#ifdef __cplusplus
}
#endif
#endif
