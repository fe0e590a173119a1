/* SPDX-License-Identifier: Apache-2.0
 * Where the time of steps went, as shares that add up to one: input (waiting for the infeed),
 * compute, memory (transfers, not hidden behind compute) and idle (host overhead). The verdict uses
 * the thresholds of openxla/xprof, op_stats_to_input_pipeline_analysis.cc. */
#ifndef TP_PROF_BREAKDOWN_H
#define TP_PROF_BREAKDOWN_H

#include <stdint.h>

typedef struct tp_breakdown { /* zero-initialise */
    uint64_t steps;
    uint64_t total_ns, input_ns, compute_ns, memory_ns; /* sums over steps */
    uint64_t min_step_ns, max_step_ns;
} tp_breakdown;

/* One step (or one loop of `steps` steps): wall time, and the parts of it that were measured. */
void tp_breakdown_add(tp_breakdown *breakdown, uint64_t steps, uint64_t total_ns, uint64_t input_ns,
                      uint64_t compute_ns, uint64_t memory_ns);
void tp_breakdown_merge(tp_breakdown *breakdown, const tp_breakdown *other);

typedef struct tp_breakdown_shares {
    double input, compute, memory, idle; /* each from 0 to 1; all 0 when nothing was added */
} tp_breakdown_shares;

/* idle is what is left; parts that add up to more than the total are scaled down together. */
tp_breakdown_shares tp_breakdown_get_shares(const tp_breakdown *breakdown);

/* "input-bound: ...", one sentence with the figure and what to do. Static text or `out_text`. */
enum { TP_BREAKDOWN_VERDICT_BYTES = 256 };
const char *tp_breakdown_verdict(const tp_breakdown *breakdown,
                                 char out_text[TP_BREAKDOWN_VERDICT_BYTES]);

#endif
