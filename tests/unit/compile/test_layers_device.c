/* SPDX-License-Identifier: Apache-2.0
 * A training step of every case of tests/golden/layers, in bfloat16, on the default device and in the
 * reference interpreter: the same bits, for two cores. TPUCL_TEST_LAYER=name takes one case alone,
 * TPUCL_TEST_POLICY=bfloat16 weights in bf16, too.
 */
#include <criterion/criterion.h>
#include "../model/model_run.h"
#include "harness/layer_case.h"
#include "harness/model_coverage.h"
#include "harness/program_run.h"

TestSuite(layers_device, .timeout = 1200);

Test(layers_device, all_cases)
{
    char *paths[LAYER_CASES];
    const int count = layer_case_list(paths);
    const char *only = getenv("TPUCL_TEST_LAYER");
    const char *policy = getenv("TPUCL_TEST_POLICY");
    tp_model_options options = mixed_options;
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    cr_assert(!policy || tp_model_policy_find(policy, &options.policy), "%s", policy);
    optimizer.rounds_stochastically = true; /* of what is bf16 */
    const tp_cross_shard two = {.shards = 2};
    for (int i = 0; i < count; i++) {
        layer_case c;
        char text[2000] = "";
        tp_graph *graph = NULL;
        layer_case_open(paths[i], &c);
        if (!only || strcmp(only, c.name) == 0) {
            tp_model *model = layer_case_model(&c, &options);
            const tp_model_train train = {c.batch, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false,
                                          &optimizer, &two};
            EXPECT_OK(tp_model_build_train(model, &train, &graph));
            const bool is_equal = program_run_compare(
                graph, &(program_run_options){.cores = 2, .seed = 11}, text, sizeof text);
            cr_assert(is_equal, "%s: %s", c.name, text);
            coverage_note_model("layer.device", model);
            coverage_note_activations("activation.device", tp_json_member(c.root, "model"));
            tp_graph_destroy(graph);
            tp_model_destroy(model);
        }
        layer_case_close(&c);
        free(paths[i]);
    }
}

/* Statistics and their gradients go over pairs of four cores, of which two are in a wave. */
Test(layers_device, normalised_over_groups_of_cores)
{
    static const char layers[] =
        "{\"type\": \"Dense\", \"units\": 5}, {\"type\": \"BatchNormalization\","
        " \"cores_per_group\": 2}, {\"type\": \"Dense\", \"units\": 3},"
        "{\"type\": \"BatchNormalization\", \"synchronized\": true}";
    char text[2000] = "";
    tp_graph *graph = NULL;
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard four = {.shards = 4};
    const tp_model_train train = {3, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &four};
    tp_model *model = model_of(layers, f32_input(1, (int64_t[]){4}), &mixed_options);
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    const program_run_options options = {.cores = 4, .wave_cores = 2, .steps = 2, .seed = 11};
    const bool is_equal = program_run_compare(graph, &options, text, sizeof text);
    cr_assert(is_equal, "%s", text);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}
