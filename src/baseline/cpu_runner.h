/* SPDX-License-Identifier: Apache-2.0
 * The CPU baseline: runs a graph on the host the way a good CPU library would. Products go to OpenBLAS on all
 * cores; element-wise chains run tile by tile, so that values between them stay in the cache; reductions,
 * windows and patches are shared among threads. f32 throughout; sums in whatever order is fast, so its bits
 * are not the contract's, its accuracy is.
 *
 * One core: give it a graph whose batch is the whole global batch. Graphs in bfloat16 are refused: a CPU has
 * no reason to round. So are graphs with loops.
 *
 * Thread-compatible.
 */
#ifndef TP_BASELINE_CPU_RUNNER_H
#define TP_BASELINE_CPU_RUNNER_H

#include "core/pool.h"
#include "graph/opdef.h"

typedef struct tp_cpu_runner tp_cpu_runner;

/* Borrows the graph. Variables get their initial values, the same as on a device. `threads` 0: all. */
tpucl_status tp_cpu_runner_create(const tp_graph *graph, uint64_t seed, int threads,
                                  tp_cpu_runner **out_runner);
void tp_cpu_runner_destroy(tp_cpu_runner *runner);

/* inputs[i]: elements of graph input i, row-major, in its dtype; read during the call only. */
tpucl_status tp_cpu_runner_step(tp_cpu_runner *runner, const void *const *inputs, uint32_t step);

/* Result of the last step; borrowed until the next. */
const tp_host_tensor *tp_cpu_runner_output(const tp_cpu_runner *runner, int32_t output);
tp_host_tensor *tp_cpu_runner_variable(tp_cpu_runner *runner, int32_t variable);

#endif
