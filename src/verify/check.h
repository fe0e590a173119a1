/* SPDX-License-Identifier: Apache-2.0
 * One check on one device: does it reproduce the contract's bits here? */
#ifndef TP_VERIFY_CHECK_H
#define TP_VERIFY_CHECK_H

#include "device/device.h"
#include "graph/graph.h"
#include "kernel/mxu_cases.h"

typedef enum tp_check_status { TP_CHECK_PASSED, TP_CHECK_FAILED, TP_CHECK_SKIPPED } tp_check_status;

typedef struct tp_check_outcome {
    tp_check_status status;
    bool is_close;     /* passed within rounding, not by bits: fast math */
    bool is_temporary; /* failed for lack of device memory, which says nothing about another time */
    char reason[384];  /* why it failed or was skipped; "" when it passed */
} tp_check_outcome;

/* Runs one MXU case with one variant, guard zones around everything (tune/mxu_check.h). A variant that
 * declines is skipped with its reason; one that does not build, does not run, writes outside or gives other
 * bits has failed. The call itself fails only for lack of host memory. */
tpucl_status tp_check_mxu_case(tp_device *device, const char *variant, const tp_mxu_case *row,
                               tp_check_outcome *out_outcome);

typedef struct tp_check_graph_options {
    int32_t cores;      /* of one replica group */
    int32_t wave_cores; /* 0: all at once */
    int32_t steps;
    uint64_t seed;      /* of variables, random ops and inputs */
    bool with_specials; /* f32 inputs hold NaN, infinities, zeros, subnormals and huge values */
    const tp_mxu_allow *allow; /* NULL: every variant */
} tp_check_graph_options;

/* Compiles a graph for the device, runs it there and in the reference interpreter on the same inputs, and
 * compares every output of every step and every variable. Inputs are made up: f32 of mixed sign and size, u8
 * of any value, s32 from 0 to 9; an input called "weight" is 1 or 0, "denominator" is positive. NaNs are
 * equal to each other whatever their bits. */
tpucl_status tp_check_graph(tp_device *device, const tp_graph *graph,
                            const tp_check_graph_options *options, tp_check_outcome *out_outcome);

#endif
