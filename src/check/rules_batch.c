/* SPDX-License-Identifier: Apache-2.0
 * Rules about how the batch is cut and fed.
 */
#include <stdio.h>
#include "check/rules.h"

/* A core's batch lies on sublanes, of which there are 8 (Cloud TPU performance guide: "128 global is
 * 16 per core; the batch should be divisible by 8 or by 128"). */
tpucl_status tp_rule_batch(const tp_check_input *input, tp_check_report *report)
{
    const int64_t batch = input->config->per_core_batch;
    if (batch % 8 == 0) return TPUCL_OK;
    const long long above = (long long)(batch / 8 + 1) * 8, below = (long long)(batch / 8) * 8;
    char remedy[96];
    if (below > 0)
        snprintf(remedy, sizeof remedy, "take %lld or %lld per core", below, above);
    else
        snprintf(remedy, sizeof remedy, "take %lld per core, or fewer cores", above);
    return tp_check_add(report, TP_SEVERITY_WARNING, "batch-multiple", "per_core_batch", remedy,
                        "%lld examples per core (%lld on %d cores): not a multiple of 8, so "
                        "arrays are padded to %lld",
                        (long long)batch, (long long)input->config->global_batch,
                        input->topology->cores, above);
}

/* The rows that fill up the last batch are computed, too. */
tpucl_status tp_rule_last_batch(const tp_check_input *input, tp_check_report *report)
{
    const int64_t global = input->config->global_batch, count = input->train_examples;
    if (count < 1 || global < 1) return TPUCL_OK;
    const int64_t steps = count / global + (count % global != 0), padded = steps * global - count;
    const double share = (double)padded / (double)(steps * global);
    if (share < 0.05) return TPUCL_OK;
    if (count < global)
        return tp_check_add(report, TP_SEVERITY_WARNING, "batch-larger-than-data", "global_batch",
                            "take a smaller batch",
                            "a step has %lld examples, all of the training data are %lld: %.0f %% "
                            "of every step is padding",
                            (long long)global, (long long)count, 100 * share);
    return tp_check_add(report, TP_SEVERITY_NOTE, "last-batch", "global_batch",
                        "take a batch that divides the data more evenly",
                        "%lld examples make %lld steps of %lld; the last one is padded, %.0f %% of "
                        "an epoch's work",
                        (long long)count, (long long)steps, (long long)global, 100 * share);
}

/* Bytes that the host feeds a core in a step against the time that its products take at peak. */
tpucl_status tp_rule_input_link(const tp_check_input *input, tp_check_report *report)
{
    const double peak = tp_topology_figure(input->topology, TP_FIGURE_PEAK_BF16, 0);
    const double link = tp_topology_figure(input->topology, TP_FIGURE_HOST_LINK, 0);
    const tp_topology *topology = input->topology;
    if (peak <= 0 || link <= 0 || report->summary.mxu_flops <= 0) return TPUCL_OK;
    double bytes = 0;
    bool has_floats = false;
    for (int32_t i = 0; i < input->train->input_count; i++) {
        const tp_node *node = tp_graph_node(input->train, input->train->inputs[i].node);
        bytes += (double)tp_shape_bytes(&node->shape, node->dtype);
        has_floats = has_floats || (node->dtype == TP_F32 && node->shape.rank > 1);
    }
    const double feed_seconds = bytes * topology->cores_per_chip / link;
    const double compute_seconds = report->summary.mxu_flops / peak;
    if (feed_seconds <= compute_seconds) return TPUCL_OK;
    return tp_check_add(
        report, TP_SEVERITY_NOTE, "input-link", "data",
        has_floats ? "feed bytes (u8) and let the device scale them, or a larger model"
                   : "the input, not the cores, sets the pace of a model this small",
        "a core's batch has %.3g MB, %.3g ms over the host's link; its products take %.3g ms at "
        "the topology's peak",
        1e-6 * bytes, 1e3 * feed_seconds, 1e3 * compute_seconds);
}
