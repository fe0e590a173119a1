/* SPDX-License-Identifier: Apache-2.0
 * The same peaks as roofline.h by plain C on the host's threads, without OpenCL: what a CPU device's probes
 * are checked against. A probe that is wrong by itself is wrong quietly (docs/benchmarks.md).
 */
#ifndef TP_BENCH_HOST_PROBE_H
#define TP_BENCH_HOST_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/status.h"

typedef enum tp_host_probe {
    TP_HOST_MULTIPLY_ADDS, /* f32, with the widest of AVX-512 and AVX2 */
    TP_HOST_PAIRS,         /* AVX512_BF16 */
    TP_HOST_COPY,          /* memcpy */
    TP_HOST_TRIAD
} tp_host_probe;

/* Whether this processor and build can do it; others are left out. */
bool tp_host_probe_is_available(tp_host_probe probe);

/* All processors; the best of `runs`. FLOP/s or bytes/s; `bytes` is the size of one operand.
 * TPUCL_NOT_EXACT when the result shows that not all was done. */
tpucl_status tp_host_probe_run(tp_host_probe probe, size_t bytes, int runs, double *out_rate);

#endif
