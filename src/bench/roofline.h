/* SPDX-License-Identifier: Apache-2.0
 * What the device at hand can do at most, measured: the roofline (Williams et al. 2009) that every
 * table's shares refer to. Peaks are the best of several runs, unlike everything else here, and each
 * run's result is read and checked: a compiler that removes the work is found out.
 */
#ifndef TP_BENCH_ROOFLINE_H
#define TP_BENCH_ROOFLINE_H

#include "core/status.h"
#include "device/device.h"

typedef struct tp_roofline {
    double multiply_add_flops; /* FLOP/s: f32, two for each multiply-add, all compute units */
    double pair_flops;         /* the same of bf16 pairs; 0: the device has no such instruction */
    double copy_bytes;         /* bytes/s read and written by a kernel that copies */
    double triad_bytes;        /* by a + factor * b */
    double driver_copy_bytes;  /* by the driver's own copy of a buffer */
    double cached_copy_bytes;  /* by the copying kernel on what fits a core's cache */
    uint64_t buffer_bytes;     /* of one operand of the copies: well above caches */
} tp_roofline;

/* Takes about a second; `is_quick` a fifth, with less memory and fewer runs. TPUCL_NOT_EXACT when a probe
 * did not do its work. */
tpucl_status tp_roofline_measure(tp_device *device, bool is_quick, tp_roofline *out_roofline);

/* The least seconds for so many operations, of bf16 products or not, and bytes moved. */
double tp_roofline_seconds(const tp_roofline *roofline, double flops, double bytes, bool is_bf16);

#endif
