/* SPDX-License-Identifier: Apache-2.0
 * A training step of every case of tests/golden/layers, under mixed_bfloat16 and under bfloat16, on the default
 * device and in the reference interpreter: the same bits, for two cores. Several cases are nested models of one, because building
 * kernels takes longer than running them. TPUCL_TEST_LAYER=name takes one case alone.
 */
#include <criterion/criterion.h>
#include "../model/model_run.h"
#include "core/alloc.h"
#include "core/json_write.h"
#include "harness/layer_case.h"
#include "harness/model_coverage.h"
#include "harness/program_run.h"

enum { GROUP = 12 };

TestSuite(layers_device, .timeout = 1200);

/* Cases of one batch, side by side in one model. */
typedef struct group {
    layer_case *cases[GROUP];
    int count;
    tp_model_input inputs[GROUP * LAYER_CASE_INPUTS];
    int32_t input_count;
} group;

/* Input `name` of case `index`. */
static void put_input(tp_json_writer *writer, const layer_case *c, int32_t input)
{
    char name[256];
    snprintf(name, sizeof name, "%s_%s", c->name, c->inputs[input].name);
    tp_json_write_string(writer, name);
}

/* The case as a nested model; how it is called inside is its own. */
static void put_case(tp_json_writer *writer, const layer_case *c)
{
    const tp_json *model = tp_json_member(c->root, "model");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "type", "Model");
    tp_json_put_string(writer, "name", c->name);
    tp_json_key(writer, "inputs");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < c->input_count; i++)
        put_input(writer, c, i);
    tp_json_end_array(writer);
    tp_json_key(writer, "model_inputs");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < c->input_count; i++)
        tp_json_write_string(writer, c->inputs[i].name);
    tp_json_end_array(writer);
    for (size_t i = 0; i < model->count; i++) {
        if (strcmp(model->items[i].key, "layers") && strcmp(model->items[i].key, "outputs"))
            continue;
        tp_json_key(writer, model->items[i].key);
        tp_json_write_value(writer, &model->items[i]);
    }
    tp_json_end_object(writer);
}

static tp_model *group_model(const group *g, const tp_model_options *options)
{
    tp_json_writer writer = {0};
    tp_json_document *document;
    tp_model *model = NULL;
    char *text;
    tp_json_begin_object(&writer);
    tp_json_key(&writer, "inputs");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < g->input_count; i++) {
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "name", g->inputs[i].name);
        tp_json_end_object(&writer);
    }
    tp_json_end_array(&writer);
    tp_json_key(&writer, "layers");
    tp_json_begin_array(&writer);
    for (int i = 0; i < g->count; i++)
        put_case(&writer, g->cases[i]);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "outputs");
    tp_json_begin_array(&writer);
    for (int i = 0; i < g->count; i++)
        tp_json_write_string(&writer, g->cases[i]->name);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    EXPECT_OK(tp_json_writer_finish(&writer, &text));
    EXPECT_OK(tp_json_parse(text, strlen(text), "group", &document));
    const tpucl_status status =
        tp_model_create_many(tp_json_root(document), g->inputs, g->input_count, options, &model);
    cr_assert(status == TPUCL_OK, "%s", tpucl_last_error()->message);
    tp_json_destroy(document);
    tp_free(text);
    return model;
}

static void group_add(group *g, layer_case *c)
{
    for (int32_t i = 0; i < c->input_count; i++) {
        const size_t length = strlen(c->name) + strlen(c->inputs[i].name) + 2;
        char *name = malloc(length);
        snprintf(name, length, "%s_%s", c->name, c->inputs[i].name);
        g->inputs[g->input_count] = c->inputs[i];
        g->inputs[g->input_count++].name = name;
    }
    g->cases[g->count++] = c;
}

/* Runs what was collected and empties the group. */
static void group_run(group *g, const tp_model_options *options)
{
    if (!g->count) return;
    const tp_cross_shard two = {.shards = 2};
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    optimizer.rounds_stochastically = true; /* of what is bf16 */
    const tp_model_train train = {g->cases[0]->batch, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false,
                                  &optimizer, &two};
    char text[2000] = "";
    tp_graph *graph = NULL;
    tp_model *model = group_model(g, options);
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    const bool is_equal = program_run_compare(graph, &(program_run_options){.cores = 2, .seed = 11},
                                              text, sizeof text);
    cr_assert(is_equal, "%s and %d more: %s", g->cases[0]->name, g->count - 1, text);
    coverage_note_model("layer.device", model);
    for (int i = 0; i < g->count; i++) {
        coverage_note_activations("activation.device", tp_json_member(g->cases[i]->root, "model"));
        layer_case_close(g->cases[i]);
        free(g->cases[i]);
    }
    for (int32_t i = 0; i < g->input_count; i++)
        free((char *)(uintptr_t)g->inputs[i].name);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
    *g = (group){0};
}

static void run_all(tp_model_policy policy)
{
    enum { BATCHES = 8 };
    static group groups[BATCHES];
    char *paths[LAYER_CASES];
    const int count = layer_case_list(paths);
    tp_model_options options = mixed_options;
    options.policy = policy;
    const char *only = getenv("TPUCL_TEST_LAYER");
    for (int i = 0; i < count; i++) {
        layer_case *c = malloc(sizeof *c);
        layer_case_open(paths[i], c);
        cr_assert(c->batch < BATCHES);
        group *g = &groups[c->batch];
        if (only && strcmp(only, c->name) != 0) {
            layer_case_close(c);
            free(c);
        } else {
            group_add(g, c);
        }
        if (g->count == GROUP) group_run(g, &options);
        free(paths[i]);
    }
    for (int i = 0; i < BATCHES; i++)
        group_run(&groups[i], &options);
}

Test(layers_device, mixed_bfloat16)
{
    run_all(TP_POLICY_MIXED_BFLOAT16);
}

Test(layers_device, bfloat16)
{
    run_all(TP_POLICY_BFLOAT16);
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
