/* SPDX-License-Identifier: Apache-2.0
 * Timeline of a run: zones with a lane, begin and end, kept in one ring per thread (the oldest are
 * overwritten), and what became of each step's time. A NULL trace is allowed everywhere and does
 * nothing, so code that traces need not ask whether it is on. Zones may be added from any thread;
 * export while no thread adds. */
#ifndef TP_PROF_TRACE_H
#define TP_PROF_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef struct tp_trace tp_trace;

/* `zones_per_thread`: 0 means 65536. */
tpucl_status tp_trace_create(size_t zones_per_thread, tp_trace **out_trace) TPUCL_MUST_CHECK;
void tp_trace_destroy(tp_trace *trace);

/* A named row of the timeline ("compute cpu:0", "infeed"); returns its number. The same name gives
 * the same lane. -1 for a NULL trace or when memory fails: zones on lane -1 are dropped. */
int tp_trace_lane(tp_trace *trace, const char *name);

/* Copies at most 47 characters of `name`. Times are tp_clock_now_ns(). `step` below zero: none. */
void tp_trace_zone(tp_trace *trace, int lane, const char *name, uint64_t begin_ns, uint64_t end_ns,
                   int64_t step);

/* Zones that were overwritten or dropped. */
uint64_t tp_trace_lost(const tp_trace *trace);

/* Chrome's trace format (JSON array of complete events, microseconds), zones by begin time. */
tpucl_status tp_trace_to_json(const tp_trace *trace, char **out_text) TPUCL_MUST_CHECK;
tpucl_status tp_trace_save(const tp_trace *trace, const char *path) TPUCL_MUST_CHECK;

#endif
