/* SPDX-License-Identifier: Apache-2.0
 * Every model of tests/golden/layers as a Keras configuration and back: the graphs of both predict and train
 * alike, node for node.
 */
#include "core/alloc.h"
#include "core/arena.h"
#include "core/str.h"
#include "graph/print.h"
#include "harness/layer_case.h"
#include "harness/model_coverage.h"
#include "keras/export.h"
#include "keras/import.h"

static const tp_model_options float32_options = {TP_POLICY_FLOAT32, TP_PRECISION_F32};

/* Labels of nodes are for people, and of a shared layer's second call Keras keeps no name. */
static void drop_labels(char *text)
{
    char *to = text;
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n"), kept = strspn(line, " ");
        const char *label = line;
        for (const char *at = line; line[kept] == '%' && at + 1 < line + length; at++)
            if (at[0] == ' ' && at[1] == '"') label = at;
        const size_t used =
            label > line && line[length - 1] == '"' ? (size_t)(label - line) : length;
        memmove(to, line, used);
        to += used;
        line += length;
        if (*line) *to++ = *line++;
    }
    *to = 0;
}

/* Both graphs as text without labels; tp_free. */
static char *graphs_of(const tp_model *model, int64_t batch)
{
    const tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_SGD);
    const tp_cross_shard one = {.shards = 1};
    const tp_model_train train = {batch, TP_MODEL_LOSS_MEAN_SQUARED_ERROR, false, &optimizer, &one};
    tp_graph *graphs[2];
    tp_str_builder builder = {0};
    char *text;
    size_t length;
    EXPECT_OK(tp_model_build_predict(model, batch, &graphs[0]));
    EXPECT_OK(tp_model_build_train(model, &train, &graphs[1]));
    for (int i = 0; i < 2; i++) {
        tp_graph_print(graphs[i], &builder);
        tp_graph_destroy(graphs[i]);
    }
    EXPECT_OK(tp_str_builder_finish(&builder, &text, &length));
    drop_labels(text);
    return text;
}

static char *export_config(const layer_case *c, const tp_model *model, tp_arena *arena)
{
    tp_keras_input inputs[LAYER_CASE_INPUTS];
    tp_keras_export_layers layers = {0};
    char *text = NULL;
    for (int32_t i = 0; i < c->input_count; i++)
        inputs[i] = (tp_keras_input){.name = c->inputs[i].name,
                                     .shape = c->inputs[i].shape,
                                     .is_integer = c->inputs[i].dtype == TP_S32};
    const tp_keras_export_options options = {.model = tp_json_member(c->root, "model"),
                                             .name = "model",
                                             .policy = "float32",
                                             .inputs = inputs,
                                             .input_count = c->input_count};
    const tpucl_status status = tp_keras_export_config(&options, model, arena, &layers, &text);
    cr_assert(status == TPUCL_OK, "%s: %s", c->name, tpucl_last_error()->message);
    return text;
}

static tp_model *import_config(const layer_case *c, const char *config, tp_arena *arena)
{
    static const tp_keras_map_options options = {tp_keras_has_type, tp_keras_has_argument};
    tp_json_document *keras, *document;
    tp_keras_model mapped;
    tp_model_input inputs[LAYER_CASE_INPUTS];
    tp_model *model = NULL;
    EXPECT_OK(tp_json_parse(config, strlen(config), "keras", &keras));
    EXPECT_OK(tp_keras_map(tp_json_root(keras), &options, arena, &mapped));
    cr_assert(tp_keras_check_findings(&mapped.findings, c->name) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert_eq(mapped.input_count, c->input_count, "%s", c->name);
    EXPECT_OK(tp_json_parse(mapped.json, strlen(mapped.json), "mapped", &document));
    for (int32_t i = 0; i < mapped.input_count; i++) {
        inputs[i] = c->inputs[i];
        inputs[i].name = mapped.inputs[i].name;
        cr_assert(tp_shape_equal(&mapped.inputs[i].shape, &c->inputs[i].shape), "%s", c->name);
    }
    const tpucl_status status = tp_model_create_many(tp_json_root(document), inputs,
                                                     mapped.input_count, &float32_options, &model);
    cr_assert(status == TPUCL_OK, "%s: %s", c->name, tpucl_last_error()->message);
    tp_json_destroy(keras);
    tp_json_destroy(document);
    return model;
}

/* True, or the first line that differs. */
static bool expect_alike(const layer_case *c, const char *before, const char *after)
{
    const char *a = before, *b = after;
    for (size_t i = 0; before[i] && before[i] == after[i]; i++)
        if (before[i] == '\n') a = before + i + 1, b = after + i + 1;
    const bool is_equal = strcmp(before, after) == 0;
    cr_expect(is_equal, "%s: line '%.*s' comes back as '%.*s'", c->name, (int)strcspn(a, "\n"), a,
              (int)strcspn(b, "\n"), b);
    return is_equal;
}

Test(keras_round_trip, all_layers, .timeout = 60)
{
    char *paths[LAYER_CASES];
    const int count = layer_case_list(paths);
    for (int i = 0; i < count; i++) {
        layer_case c;
        tp_arena *arena;
        layer_case_open(paths[i], &c);
        EXPECT_OK(tp_arena_create(0, &arena));
        tp_model *model = layer_case_model(&c, &float32_options);
        char *config = export_config(&c, model, arena);
        tp_model *again = import_config(&c, config, arena);
        char *before = graphs_of(model, c.batch), *after = graphs_of(again, c.batch);
        if (expect_alike(&c, before, after)) coverage_note_model("layer.keras", model);
        tp_free(before);
        tp_free(after);
        tp_free(config);
        tp_model_destroy(model);
        tp_model_destroy(again);
        tp_arena_destroy(arena);
        layer_case_close(&c);
        free(paths[i]);
    }
}
