/* SPDX-License-Identifier: Apache-2.0
 * Small products that a kernel treats as it treats a large one: same kind, layouts, dtypes, precision,
 * kernel, strides and channels modulo a vector, but a few ragged tiles instead of hundreds. What a
 * choice (kernel/mxu_choice.h) does to a product is proven on these before it is timed or used, because
 * the definition of the product takes hours for the real thing.
 */
#ifndef TP_TUNE_NEIGHBOUR_H
#define TP_TUNE_NEIGHBOUR_H

#include "device/device.h"
#include "kernel/mxu_cases.h"
#include "kernel/mxu_choice.h"

/* For two cores. Sums of more than one block of k keep that, because such kernels store partial sums. */
void tp_mxu_neighbour(const tp_mxu_problem *problem, const tp_mxu_choice *choice, tp_mxu_fill fill,
                      tp_mxu_case *out_case);

/* Runs the neighbours of `problem` with ordinary, non-finite and tiny operands as `choice` says, and
 * compares every bit and every guard byte. *out_is_right with "", or not with what was wrong. Fails only when it
 * could not be found out. */
tpucl_status tp_mxu_check_neighbours(tp_device *device, const tp_mxu_problem *problem,
                                     const tp_mxu_choice *choice, bool *out_is_right,
                                     char out_text[256]);

/* What a verdict on these depends on besides device and kernels: equal texts, equal launches but for
 * the epilogue. */
enum { TP_NEIGHBOUR_KEY_BYTES = 1024 };
tpucl_status tp_mxu_neighbour_key(const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                                  char out_text[TP_NEIGHBOUR_KEY_BYTES]);

#endif
