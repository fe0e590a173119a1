/* SPDX-License-Identifier: Apache-2.0
 * Shares of step time and the sentence about them. */
#include "prof/breakdown.h"

#include <stdio.h>

void tp_breakdown_add(tp_breakdown *breakdown, uint64_t steps, uint64_t total_ns, uint64_t input_ns,
                      uint64_t compute_ns, uint64_t memory_ns)
{
    if (!steps) return;
    uint64_t step_ns = total_ns / steps;
    if (!breakdown->steps || step_ns < breakdown->min_step_ns) breakdown->min_step_ns = step_ns;
    if (step_ns > breakdown->max_step_ns) breakdown->max_step_ns = step_ns;
    breakdown->steps += steps;
    breakdown->total_ns += total_ns;
    breakdown->input_ns += input_ns;
    breakdown->compute_ns += compute_ns;
    breakdown->memory_ns += memory_ns;
}

void tp_breakdown_merge(tp_breakdown *breakdown, const tp_breakdown *other)
{
    if (!other->steps) return;
    if (!breakdown->steps || other->min_step_ns < breakdown->min_step_ns)
        breakdown->min_step_ns = other->min_step_ns;
    if (other->max_step_ns > breakdown->max_step_ns) breakdown->max_step_ns = other->max_step_ns;
    breakdown->steps += other->steps;
    breakdown->total_ns += other->total_ns;
    breakdown->input_ns += other->input_ns;
    breakdown->compute_ns += other->compute_ns;
    breakdown->memory_ns += other->memory_ns;
}

tp_breakdown_shares tp_breakdown_get_shares(const tp_breakdown *breakdown)
{
    tp_breakdown_shares shares = {0};
    double parts =
        (double)breakdown->input_ns + (double)breakdown->compute_ns + (double)breakdown->memory_ns;
    double whole = (double)breakdown->total_ns;
    if (parts > whole) whole = parts;
    if (whole <= 0) return shares;
    shares.input = (double)breakdown->input_ns / whole;
    shares.compute = (double)breakdown->compute_ns / whole;
    shares.memory = (double)breakdown->memory_ns / whole;
    shares.idle = (whole - parts) / whole;
    return shares;
}

const char *tp_breakdown_verdict(const tp_breakdown *breakdown,
                                 char out_text[TP_BREAKDOWN_VERDICT_BYTES])
{
    /* Percent of step time: input from 5 moderate, from 20 high; idle that input does not explain from 3. */
    enum { INPUT_MODERATE = 5, INPUT_HIGH = 20, IDLE_NOTABLE = 3, MEMORY_HIGH = 15 };
    tp_breakdown_shares shares = tp_breakdown_get_shares(breakdown);
    double input = 100 * shares.input, idle = 100 * shares.idle, memory = 100 * shares.memory;
    if (!breakdown->total_ns) return "unknown: no step was measured";
    if (input >= INPUT_HIGH)
        snprintf(out_text, TP_BREAKDOWN_VERDICT_BYTES,
                 "input-bound: %.0f%% of the time the cores wait for data; more prefetch, cheaper "
                 "preparation, augmentation on the device (data.augment.on) or bytes instead of "
                 "floats would help",
                 input);
    else if (input >= INPUT_MODERATE)
        snprintf(
            out_text, TP_BREAKDOWN_VERDICT_BYTES,
            "partly input-bound: %.0f%% of the time the cores wait for data; more prefetch may "
            "help",
            input);
    else if (memory >= MEMORY_HIGH)
        snprintf(
            out_text, TP_BREAKDOWN_VERDICT_BYTES,
            "transfer-bound: %.0f%% of the time goes into transfers that compute does not hide; "
            "a larger batch would help",
            memory);
    else if (idle >= IDLE_NOTABLE)
        snprintf(out_text, TP_BREAKDOWN_VERDICT_BYTES,
                 "host overhead: %.0f%% of the time the cores are idle but not waiting for data; "
                 "more steps per loop or a larger batch would help",
                 idle);
    else
        snprintf(out_text, TP_BREAKDOWN_VERDICT_BYTES,
                 "compute-bound: %.0f%% of the time is computation", 100 * shares.compute);
    return out_text;
}
