/* SPDX-License-Identifier: Apache-2.0
 * Verdicts first, then the program. */
#include "verify/compile_verified.h"

#include <string.h>
#include "core/env.h"
#include "core/log.h"
#include "kernel/records.h"

static tpucl_status compile_with(const tp_graph *graph, tp_device *device,
                                 const tp_compile_verified_options *options,
                                 const tp_mxu_allow *allow, tp_program **out_program)
{
    const tp_compile_options compile = {.name = options->name,
                                        .caps = tp_device_get_caps(device),
                                        .allow = allow,
                                        .cores = options->cores,
                                        .max_slab_segment_bytes = options->max_slab_segment_bytes,
                                        .is_fast_math = options->is_fast_math};
    return tp_compile(graph, &compile, out_program);
}

/* TPUCL_VERIFY=0 */
static tpucl_status compile_unverified(const tp_graph *graph, tp_device *device,
                                       const tp_compile_verified_options *options,
                                       tp_program **out_program)
{
    tp_mxu_records *records = NULL;
    TP_TRY(tp_mxu_records_open(tp_device_get_caps(device), &records));
    const tp_mxu_allow allow = {.records = records};
    TP_LOG_WARNING("verify", "TPUCL_VERIFY is off: kernels were not checked on %s",
                   tp_device_label(device));
    const tpucl_status status = compile_with(graph, device, options, &allow, out_program);
    tp_mxu_records_close(records);
    return status;
}

tpucl_status tp_compile_verified(const tp_graph *graph, tp_device *device,
                                 const tp_compile_verified_options *options,
                                 tp_program **out_program)
{
    tp_verdicts *verdicts = NULL;
    tp_mxu_records *records = NULL;
    bool is_verified = true;
    TP_TRY(tp_env_flag(TP_ENV_VERIFY, true, &is_verified));
    if (!is_verified) return compile_unverified(graph, device, options, out_program);
    TP_TRY(tp_verdicts_open(device, options->cache_folder, options->progress, options->user,
                            &verdicts));
    tpucl_status status =
        options->is_fast_math ? TPUCL_OK : tp_verdicts_need_exact(verdicts, graph);
    if (status == TPUCL_OK) status = tp_mxu_records_open(tp_device_get_caps(device), &records);
    if (status == TPUCL_OK) {
        tp_mxu_allow allow = tp_verdicts_allow(verdicts);
        allow.records = records;
        status = compile_with(graph, device, options, &allow, out_program);
    }
    tp_mxu_records_close(records);
    if (options->inout_verify_seconds)
        *options->inout_verify_seconds += tp_verdicts_seconds(verdicts);
    tp_verdicts_close(verdicts);
    return status;
}

tpucl_status tp_compile_for_devices(const tp_graph *graph, const tp_core_map *map,
                                    const tp_compile_verified_options *options,
                                    tp_program **out_programs)
{
    tp_compile_verified_options here = *options;
    if (!here.cores) here.cores = tp_core_map_most_cores(map);
    for (int32_t d = 0; d < map->device_count; d++) {
        const tp_device_caps *caps = tp_device_get_caps(map->devices[d]);
        for (int32_t other = 0; other < d && !out_programs[d]; other++)
            if (memcmp(caps, tp_device_get_caps(map->devices[other]), sizeof *caps) == 0)
                out_programs[d] = out_programs[other];
        if (!out_programs[d])
            TP_TRY(tp_compile_verified(graph, map->devices[d], &here, &out_programs[d]));
    }
    return TPUCL_OK;
}

void tp_programs_destroy(tp_program **programs, int32_t device_count)
{
    for (int32_t d = 0; programs && d < device_count; d++) {
        bool is_shared = false;
        for (int32_t other = 0; other < d; other++)
            is_shared = is_shared || programs[other] == programs[d];
        if (!is_shared) tp_program_destroy(programs[d]);
    }
}
