/* SPDX-License-Identifier: Apache-2.0
 * What each launch took, summed over the sites that run it. */
#include "exec/executor_internal.h"

void tp_loaded_measure_begin(tp_loaded *loaded)
{
    for (int32_t s = 0; s < loaded->executor->site_count; s++)
        for (int32_t i = 0; i < loaded->sites[s].program->launch_count; i++) {
            tp_bound_launch *launch = &loaded->sites[s].launches[i];
            launch->runs = launch->core_runs = launch->total_ns = 0;
        }
    loaded->is_measured = true;
}

void tp_loaded_measure_end(tp_loaded *loaded)
{
    loaded->is_measured = false;
}

int32_t tp_loaded_launch_count(const tp_loaded *loaded)
{
    return loaded->programs[0]->launch_count;
}

void tp_loaded_launch_time(const tp_loaded *loaded, int32_t index, tp_launch_time *out_time)
{
    const tp_launch *launch = &loaded->programs[0]->launches[index];
    *out_time = (tp_launch_time){.label = launch->label, .entry = launch->entry};
    if (!launch->entry) out_time->entry = "clblast_sgemm";
    for (int32_t s = 0; s < loaded->executor->site_count; s++) {
        const tp_bound_site *site = &loaded->sites[s];
        if (index >= site->program->launch_count) continue; /* planned for another kind of device */
        const tp_bound_launch *bound = &site->launches[index];
        out_time->runs += bound->runs;
        out_time->total_ns += bound->total_ns;
        out_time->flops += (double)bound->core_runs * bound->launch->flops;
        out_time->bytes += (double)bound->core_runs * bound->launch->bytes;
    }
}
