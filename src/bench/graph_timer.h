/* SPDX-License-Identifier: Apache-2.0
 * One graph on one core of a device, step by step, each launch timed: for suites about parts of a training
 * step. Inputs are filled with 0.75 (labels with 0); transfers are not in the time. */
#ifndef TP_BENCH_GRAPH_TIMER_H
#define TP_BENCH_GRAPH_TIMER_H

#include "core/status.h"
#include "device/device.h"
#include "graph/graph.h"

typedef struct tp_graph_timer tp_graph_timer;

/* Compiles and loads `graph`, which must outlive the timer. */
tpucl_status tp_graph_timer_create(tp_device *device, const tp_graph *graph,
                                   tp_graph_timer **out_timer) TPUCL_MUST_CHECK;
void tp_graph_timer_destroy(tp_graph_timer *timer);

/* One step: seconds of all its launches together. */
tpucl_status tp_graph_timer_step(tp_graph_timer *timer, double *out_seconds) TPUCL_MUST_CHECK;

/* Launches that a step has. */
int32_t tp_graph_timer_launches(const tp_graph_timer *timer);

#endif
