/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_run holds. */
#ifndef TP_API_RUN_INTERNAL_H
#define TP_API_RUN_INTERNAL_H

#include <tpucl/run.h>
#include "api/handles.h"
#include "core/arena.h"
#include "core/json_write.h"
#include "train/session.h"

struct tpucl_run {
    tp_session *session;
    tpucl_run_info info;     /* strings borrowed from the session */
    tpucl_run_result result; /* of the last training; `epochs` is the copy below */
    tpucl_epoch *epochs;
    tp_arena *arena;
    const char *metric_names[TPUCL_MAX_METRICS]; /* static */
    int32_t metric_count;
    tpucl_launch_profile *launches; /* of the last profile */
    void (*building)(void *user, const char *what, int32_t done, int32_t total);
    void *building_user;
    bool overwrite; /* checkpoints of an earlier run */
};

/* The configuration that the options name, with their overrides; not resolved yet. */
tpucl_status tp_api_read_config(const tpucl_run_options *options, tp_config **out_config);

/* What every result begins with: what was run, on what. */
void tp_api_write_run(tp_json_writer *writer, const tpucl_run *run);

tpucl_epoch tp_api_epoch(const tpucl_run *run, const tp_session_epoch *epoch);

#endif
