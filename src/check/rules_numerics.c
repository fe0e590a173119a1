/* SPDX-License-Identifier: Apache-2.0
 * Rules about precision, statistics, and ops that a TPU does slowly or not at all.
 */
#include <stdio.h>
#include <string.h>
#include "check/rules.h"
#include "topo/config_table.h"

/* Ops that a TPU's vector unit has no good way for, or XLA no static form of. */
static const struct {
    const char *op, *tpu, *here;
} slow_ops[] = {
    {"sort", "sorting is a network of compare-exchange steps over the vector unit", "stable sort"},
    {"top_k", "it sorts all of the axis", "exact, ties to the lower index"},
    {"gather",
     "it reads row by row, outside of the MXU; small tables do better as a product with "
     "one-hot rows",
     "gather kernel"},
    {"scatter", "updates are done one after the other", "rising index order, deterministic"},
    {"cumulative", "a serial chain over the axis", "fixed order"},
    {"cbrt", "it is expanded into log and exp", "correct to the bound in docs/precision.md"},
};

tpucl_status tp_rule_slow_ops(const tp_check_input *input, tp_check_report *report)
{
    const tp_graph *graph = input->train;
    for (size_t i = 0; i < sizeof slow_ops / sizeof *slow_ops; i++) {
        int32_t count = 0;
        tp_node_id first = TP_NO_NODE;
        for (tp_node_id id = 0; id < graph->node_count; id++) {
            if (!tp_node_is(tp_graph_node(graph, id), slow_ops[i].op)) continue;
            if (!count++) first = id;
        }
        if (!count) continue;
        const char *layer = tp_check_layer_of(graph, first, report->arena);
        if (!layer) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_check_add(report, TP_SEVERITY_NOTE, "slow-op", layer,
                            "keep it out of the inner part of the model where it can be avoided",
                            "'%s' (%d times in the step) is slow on a TPU: %s; tpucl: %s",
                            slow_ops[i].op, count, slow_ops[i].tpu, slow_ops[i].here));
    }
    return TPUCL_OK;
}

/* f32 products take six bf16 passes. */
tpucl_status tp_rule_precision(const tp_check_input *input, tp_check_report *report)
{
    const double bf16 = tp_topology_figure(input->topology, TP_FIGURE_PEAK_BF16, 0);
    const double f32 = tp_topology_figure(input->topology, TP_FIGURE_PEAK_F32, 0);
    if (bf16 <= f32 || f32 <= 0 || input->config->precision.policy != TP_PRECISION_FLOAT32)
        return TPUCL_OK;
    return tp_check_add(report, TP_SEVERITY_WARNING, "float32-policy", "precision",
                        "set \"precision\": \"mixed_bfloat16\" and compare the loss of both",
                        "all products are f32: %.1f instead of %.1f TFLOP/s at best per core",
                        1e-12 * f32, 1e-12 * bf16);
}

tpucl_status tp_rule_logits(const tp_check_input *input, tp_check_report *report)
{
    const tp_config *config = input->config;
    if (config->loss.from_logits || !tp_config_choice_has("loss.from_logits", config->loss.name))
        return TPUCL_OK;
    return tp_check_add(report, TP_SEVERITY_NOTE, "probabilities", "loss.from_logits",
                        "leave the last softmax out and set \"from_logits\": true",
                        "the loss takes probabilities; a bf16 one has 8 bits, so everything above "
                        "0.998 is the same to it unless softmax and loss are fused");
}

/* Cores that a layer's statistics go over: those of a sum over neighbours that it has in the graph. */
static int64_t cores_of_statistics(const tp_graph *graph, const char *layer)
{
    const size_t length = strlen(layer);
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = tp_graph_node(graph, id);
        if (tp_node_is(node, "cross_replica_sum") && !strncmp(node->name, layer, length) &&
            node->name[length] == '/')
            return tp_node_attr_int(node, "group", 1);
    }
    return 1;
}

/* Statistics of few examples are noise: 16 is where published results begin to suffer (Wu and He,
 * "Group Normalization", 2018, figure 1). */
tpucl_status tp_rule_batch_normalization(const tp_check_input *input, tp_check_report *report)
{
    const int64_t per_core = input->config->per_core_batch;
    if (per_core >= 16) return TPUCL_OK;
    for (int32_t i = 0; i < input->train->variable_count; i++) {
        const char *name = input->train->variables[i].name, *slash = strrchr(name, '/');
        if (!slash || strcmp(slash, "/moving_variance") != 0) continue;
        char layer[256];
        snprintf(layer, sizeof layer, "%.*s", (int)(slash - name), name);
        const int64_t cores = cores_of_statistics(input->train, layer), batch = per_core * cores;
        if (batch >= 16) continue;
        return tp_check_add(report, TP_SEVERITY_WARNING, "batch-statistics", layer,
                            "more examples per core, statistics over several cores, or "
                            "GroupNormalization",
                            "its mean and variance come from %s%lld examples",
                            cores > 1 ? "its cores' " : "one core's ", (long long)batch);
    }
    return TPUCL_OK;
}
