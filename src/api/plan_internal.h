/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_plan_report holds.
 */
#ifndef TP_API_PLAN_INTERNAL_H
#define TP_API_PLAN_INTERNAL_H

#include <tpucl/plan.h>
#include "api/check_internal.h"
#include "bench/roofline.h"
#include "core/array.h"
#include "plan/project.h"
#include "train/session_plan.h"

/* One topology: the session lives as long as the report, whose texts borrow from it. */
typedef struct tp_plan_entry {
    tp_session *session;
    tp_session_plan plan;
    tp_projection *projection; /* NULL: nothing is projected */
    tpucl_plan_row row;
} tp_plan_entry;

TP_ARRAY_DEFINE(tp_plan_entries, tp_plan_entry)
TP_ARRAY_DEFINE(tp_plan_notes, const char *)

struct tpucl_plan_report {
    tp_arena *arena;
    tp_plan_entries entries;
    tp_plan_notes notes; /* in the arena */
    const char *name;    /* of the run */
};

/* The device at hand as a topology of one core: what it computes and copies at most, measured, and its memory.
 * TPUCL_NO_DEVICE. */
tpucl_status tp_api_measure_here(const char *selector, int32_t split, tp_roofline *out_roofline,
                                 tp_device_caps *out_caps) TPUCL_MUST_CHECK;
tpucl_status tp_api_topology_here(const tp_roofline *roofline, const tp_device_caps *caps,
                                  tp_topology **out_topology) TPUCL_MUST_CHECK;

/* A source of one example, for a configuration whose data are not there: inputs as the model's "inputs" or
 * "input_shape" say. TPUCL_INVALID_CONFIG when they say nothing. */
tpucl_status tp_api_stand_in(const tp_config *config, tp_source **out_source) TPUCL_MUST_CHECK;

#endif
