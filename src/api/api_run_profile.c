/* SPDX-License-Identifier: Apache-2.0
 * Where the time of a run's steps goes, launch by launch. */
#include "api/run_internal.h"
#include "core/alloc.h"

static tpucl_status copy_launches(tpucl_run *run, int64_t steps, tpucl_profile *out_profile)
{
    const int32_t count = tp_session_launch_count(run->session);
    tpucl_launch_profile *launches = TP_NEW_ARRAY(tpucl_launch_profile, (size_t)count);
    if (!launches) return TPUCL_OUT_OF_MEMORY;
    tp_free(run->launches);
    run->launches = launches;
    out_profile->launches = launches;
    out_profile->launch_count = count;
    for (int32_t i = 0; i < count; i++) {
        tp_launch_time time;
        tp_session_launch_time(run->session, i, &time);
        launches[i] =
            (tpucl_launch_profile){.name = time.label,
                                   .kernel = time.entry,
                                   .runs = (double)time.runs / (double)steps,
                                   .seconds = 1e-9 * (double)time.total_ns / (double)steps,
                                   .flops = time.flops / (double)steps,
                                   .bytes = time.bytes / (double)steps};
        out_profile->launch_seconds += launches[i].seconds;
    }
    return TPUCL_OK;
}

tpucl_status tpucl_run_profile(tpucl_run *run, int64_t steps, tpucl_profile *out_profile)
{
    TP_API_NEED(run);
    TP_API_NEED(out_profile);
    if (steps < 1 || steps > 1000000)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'steps' is %lld, expected 1 to 1000000",
                       (long long)steps);
    if (tp_session_launch_count(run->session) == 0)
        return TP_FAIL(TPUCL_UNSUPPORTED, "the reference interpreter has no launches to be timed");
    double warm, free, measured;
    TP_TRY(tp_session_run_steps(run->session, 1, &warm));
    TP_TRY(tp_session_run_steps(run->session, steps, &free));
    TP_TRY(tp_session_measure_steps(run->session, steps, &measured));
    *out_profile = (tpucl_profile){.steps = steps,
                                   .step_seconds = free / (double)steps,
                                   .measured_seconds = measured / (double)steps};
    TP_TRY(copy_launches(run, steps, out_profile));
    return TPUCL_OK;
}

tpucl_status tpucl_run_profile_json(tpucl_run *run, const tpucl_profile *profile, char **out_text)
{
    TP_API_NEED(run);
    TP_API_NEED(profile);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_api_write_run(&writer, run);
    tp_json_put_int(&writer, "steps", profile->steps);
    tp_json_put_double(&writer, "step_seconds", profile->step_seconds);
    tp_json_put_double(&writer, "measured_seconds", profile->measured_seconds);
    tp_json_put_double(&writer, "launch_seconds", profile->launch_seconds);
    tp_json_key(&writer, "launches");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < profile->launch_count; i++) {
        const tpucl_launch_profile *launch = &profile->launches[i];
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "name", launch->name);
        tp_json_put_string(&writer, "kernel", launch->kernel);
        tp_json_put_double(&writer, "runs", launch->runs);
        tp_json_put_double(&writer, "seconds", launch->seconds);
        tp_json_put_double(&writer, "flops", launch->flops);
        tp_json_put_double(&writer, "bytes", launch->bytes);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}
