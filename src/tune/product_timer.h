/* SPDX-License-Identifier: Apache-2.0
 * One product with operands of its own, ready to be run and timed again and again: for `tpucl bench
 * gemm`, the developer bench and the tuner.
 */
#ifndef TP_TUNE_PRODUCT_TIMER_H
#define TP_TUNE_PRODUCT_TIMER_H

#include "device/device.h"
#include "kernel/mxu.h"

typedef struct tp_product_timer tp_product_timer;

/* Dense problems to time. `precision` F32 takes and gives f32, the others take bf16 and give
 * f32. */
void tp_product_dot(tp_precision precision, int64_t m, int64_t n, int64_t k,
                    tp_mxu_problem *out_problem);

/* Plans `problem` (its epilogue is set here: a plain one; tensors and label too) with `variant`, or
 * NULL for the catalogue's choice, for a wave of `cores`, builds the kernels and fills the operands
 * with values in [-1, 1). */
tpucl_status tp_product_timer_create(tp_device *device, const tp_mxu_problem *problem,
                                     const char *variant, int32_t cores,
                                     tp_product_timer **out_timer);
/* The same with all that `allow` says: settings, records. */
tpucl_status tp_product_timer_create_with(tp_device *device, const tp_mxu_problem *problem,
                                          const tp_mxu_allow *allow, int32_t cores,
                                          tp_product_timer **out_timer);
void tp_product_timer_destroy(tp_product_timer *timer);

/* Runs the product `repeats` times and waits; *out_seconds is the time of one.
 * `with_weights_packed` leaves out what a training step does once for all its products: packing
 * operands that stand once per device. */
tpucl_status tp_product_timer_run(tp_product_timer *timer, int32_t repeats,
                                  bool with_weights_packed, double *out_seconds);

/* The same for packing alone, of every operand. */
tpucl_status tp_product_timer_run_packing(tp_product_timer *timer, int32_t repeats,
                                          double *out_seconds);

/* The first core's result as f32, batch * m * n, to check it once before timing. */
tpucl_status tp_product_timer_read(tp_product_timer *timer, float *out_c);
/* The first core's tensor 0 (A), 1 (B) or 2 (C) as it lies in memory, as f32: batch * rows * columns, of
 * convolutions the images or the filter. Writing goes to all cores, rounded where the tensor is bf16, so
 * that several libraries can work on the same data. */
size_t tp_product_timer_elements(const tp_product_timer *timer, int32_t tensor);
tpucl_status tp_product_timer_read_tensor(tp_product_timer *timer, int32_t tensor,
                                          float *out_elements);
tpucl_status tp_product_timer_write_tensor(tp_product_timer *timer, int32_t tensor,
                                           const float *elements);
/* The first core's result as it is stored: *out_bytes of it, which the caller tp_free()s. */
tpucl_status tp_product_timer_read_bits(tp_product_timer *timer, void **out_bits,
                                        size_t *out_bytes);
/* The first core's operands as dense f32 [m][k], [k][n] of batch entry 0; dot_general only. */
tpucl_status tp_product_timer_operands(tp_product_timer *timer, float *out_a, float *out_b);

/* "mxu_register", and the plan behind it. Borrowed. */
const tp_mxu_plan *tp_product_timer_plan(const tp_product_timer *timer);

/* The middle one of `count` values, which are sorted in place. */
double tp_product_median(double *values, int32_t count);

#endif
