/* SPDX-License-Identifier: Apache-2.0
 * What becomes of configurations that Keras wrote, files and single forms of the schema. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "io/keras_file.h"
#include "keras/map.h"

#define GOLDEN TPUCL_SOURCE_DIR "/tests/golden/keras/"

static tp_arena *arena;

static void make_arena(void)
{
    cr_assert_eq(tp_arena_create(0, &arena), TPUCL_OK);
}

static void drop_arena(void)
{
    tp_arena_destroy(arena);
}

TestSuite(keras_map, .init = make_arena, .fini = drop_arena);

/* Without white space, so that expectations can be written on lines as they read best. */
static const char *squeeze(const char *text)
{
    char *out = tp_arena_alloc(arena, strlen(text) + 1), *at = out;
    for (; *text; text++)
        if (!strchr(" \n", *text)) *at++ = *text;
    *at = 0;
    return out;
}

static tp_keras_model map_text(const char *text)
{
    tp_json_document *document;
    tp_keras_model model;
    cr_assert_eq(tp_json_parse(text, strlen(text), "test", &document), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_keras_map(tp_json_root(document), NULL, arena, &model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_json_destroy(document); /* nothing may be borrowed from it */
    return model;
}

static tp_keras_model map_golden(const char *name)
{
    tp_keras_file *file;
    tp_keras_model model;
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    cr_assert_eq(tp_keras_open(path, NULL, &file), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_keras_map(tp_keras_config(file), NULL, arena, &model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_keras_close(file);
    return model;
}

static void expect_json(const tp_keras_model *model, const char *expected)
{
    cr_assert_not_null(model->json, "%s",
                       model->findings.count ? model->findings.items[0].what : "no findings");
    cr_assert_str_eq(squeeze(model->json), squeeze(expected));
}

static void expect_layer(const tp_keras_model *model, int32_t index, const char *name,
                         const char *place, const char *owner)
{
    cr_assert_gt(model->layer_count, index);
    cr_assert_str_eq(model->layers[index].name, name);
    cr_assert_str_eq(model->layers[index].place, place);
    cr_assert_str_eq(model->layers[index].owner, owner);
}

static const char mlp[] =
    "{'name':'mlp','inputs':[{'name':'%s','shape':[4,3],'dtype':'float32'}],'layers':["
    "{'name':'flatten','type':'Flatten'},"
    "{'name':'dense','type':'Dense','units':5,'activation':'relu','use_bias':true,"
    "'kernel_initializer':'glorot_uniform','bias_initializer':'zeros'},"
    "{'name':'batch_normalization','type':'BatchNormalization','axis':-1,'momentum':0.99,"
    "'epsilon':0.001,'center':true,'scale':true,'beta_initializer':'zeros',"
    "'gamma_initializer':'ones','moving_mean_initializer':'zeros',"
    "'moving_variance_initializer':'ones'%s},"
    "{'name':'dropout','type':'Dropout','rate':0.25},"
    "{'name':'classes','type':'Dense','units':3,'activation':'softmax','use_bias':true,"
    "'kernel_initializer':'glorot_uniform','bias_initializer':'zeros'}],'outputs':['classes']}";

static const char *double_quotes(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return text;
}

Test(keras_map, sequential_of_keras_3_and_2)
{
    char expected[2048];
    /* arguments that tpucl's layer lacks are only dropped when it is asked: here all are kept */
    tp_keras_model model = map_golden("mlp.keras");
    snprintf(expected, sizeof expected, mlp, "input_layer", ",'synchronized':false,'renorm':false");
    expect_json(&model, double_quotes(expected));
    expect_layer(&model, 1, "dense", "layers/dense", "dense");
    expect_layer(&model, 4, "classes", "layers/dense_1", "classes");
    model = map_golden("mlp.h5");
    expect_json(&model, expected);
    model = map_golden("old_mlp.keras");
    /* Keras 2 writes the axis as a list of what was built: [1] */
    cr_assert_not_null(strstr(model.json, "\"axis\": 1,"), "%s", model.json);
    cr_assert_not_null(strstr(model.json, "\"name\": \"input_"), "%s", model.json);
}

static bool has_no_type(const char *type)
{
    return strcmp(type, "Flatten") == 0 || strcmp(type, "Dense") == 0;
}

static bool has_some_arguments(const char *type, const char *argument)
{
    (void)type;
    return strcmp(argument, "activation") != 0 && strcmp(argument, "bias_regularizer") != 0;
}

Test(keras_map, nested_and_shared)
{
    const tp_keras_model new = map_golden("shared.keras"), old = map_golden("old_shared.h5");
    static const char rows[] =
        "\"outputs\":[\"norm\"],\"inputs\":\"a\"},"
        "{\"layer\":\"encoder\",\"name\":\"encoder_again\",\"inputs\":\"b\"},";
    const char *text = squeeze(new.json);
    cr_assert_not_null(strstr(text, "\"model_inputs\":[\"enc_in\"],\"layers\":[{\"name\":\"proj\""),
                       "%s", text);
    cr_assert_not_null(strstr(text, rows), "%s", text);
    cr_assert_not_null(
        strstr(text,
               "{\"name\":\"sum\",\"type\":\"Add\",\"inputs\":[\"encoder\",\"encoder_again\"]}"),
        "%s", text);
    cr_assert_not_null(strstr(text, "\"inputs\":[\"both\",\"both_again\",\"sum\"]}"), "%s", text);
    text = squeeze(old.json);
    cr_assert_not_null(strstr(text, rows), "%s", text);
    cr_assert_not_null(
        strstr(text,
               "{\"name\":\"sum\",\"type\":\"Add\",\"inputs\":[\"encoder\",\"encoder_again\"]}"),
        "%s", text);
    cr_assert_eq(new.input_count, 2);
    cr_assert_eq(old.input_count, 2);
    expect_layer(&new, 0, "encoder/proj", "layers/functional/layers/dense", "encoder");
    expect_layer(&new, 1, "encoder/norm", "layers/functional/layers/batch_normalization",
                 "encoder");
    expect_layer(&new, 2, "both", "layers/dense", "both");
    expect_layer(&new, 5, "head/dense_1", "layers/sequential/layers/dense", "head");
    expect_layer(&new, 6, "out", "layers/dense_1", "out");
}

Test(keras_map, class_numbers_are_integers)
{
    tp_keras_model model = map_golden("lstm.keras");
    cr_assert(model.inputs[0].is_integer);
    cr_assert_not_null(strstr(model.json, "\"recurrent_initializer\": {"), "%s", model.json);
    model = map_golden("old_lstm.h5");
    cr_assert(model.inputs[0].is_integer);
    cr_assert_eq(model.inputs[0].shape.dims[0], 5);
}

Test(keras_map, wrappers_and_attention)
{
    const tp_keras_model model = map_golden("sequence.keras");
    const char *text = squeeze(model.json);
    cr_assert_not_null(strstr(text,
                              "\"type\":\"Bidirectional\",\"merge_mode\":\"concat\",\"layer\":"
                              "{\"type\":\"GRU\","),
                       "%s", text);
    cr_assert_not_null(strstr(text, "\"inputs\":[\"each\",\"each\"]"), "%s", text);
}

Test(keras_map, everything_unknown_is_named_at_once)
{
    tp_keras_model model = map_golden("custom.json");
    cr_assert_null(model.json);
    cr_assert_eq(model.findings.count, 2, "Lambda alone is refused while all types are accepted");
    const tp_keras_map_options options = {.has_type = has_no_type};
    tp_keras_file *file;
    cr_assert_eq(tp_keras_open(GOLDEN "custom.json", NULL, &file), TPUCL_OK);
    cr_assert_eq(tp_keras_map(tp_keras_config(file), &options, arena, &model), TPUCL_OK);
    tp_keras_close(file);
    cr_assert_eq(tp_keras_check_findings(&model.findings, "the model"), TPUCL_INVALID_CONFIG);
    const char *message = tpucl_last_error()->message;
    cr_assert_not_null(strstr(message, "the model has 3 problems"), "%s", message);
    cr_assert_not_null(strstr(message, "Lambda 'double': it is Python code"), "%s", message);
    cr_assert_not_null(strstr(message, "Lambda 'more'"), "%s", message);
    cr_assert_not_null(strstr(message, "Odd 'odd': it is a class of your own"), "%s", message);
    cr_assert_not_null(strstr(message, "docs/layers.md"), "%s", message);
}

Test(keras_map, arguments_without_equal)
{
    static const char text[] =
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"Dense\","
        "\"config\":"
        "{\"name\":\"d\",\"units\":2,\"activation\":\"tanh\",\"bias_regularizer\":null,"
        "\"batch_input_shape\":[null,3]}}]}}";
    const tp_keras_map_options options = {.has_argument = has_some_arguments};
    tp_json_document *document;
    tp_keras_model model;
    cr_assert_eq(tp_json_parse(text, strlen(text), "test", &document), TPUCL_OK);
    cr_assert_eq(tp_keras_map(tp_json_root(document), &options, arena, &model), TPUCL_OK);
    tp_json_destroy(document);
    cr_assert_eq(model.findings.count, 1);
    cr_assert_not_null(strstr(model.findings.items[0].what, "'activation' is the string 'tanh'")
                           ?: strstr(model.findings.items[0].what, "'activation' is 'tanh'"),
                       "%s", model.findings.items[0].what);
}

/* One Dense layer with these extra members of its config. */
static tp_keras_model map_dense(const char *members)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"class_name\":\"Sequential\",\"config\":[{\"class_name\":\"Custom>Dense\","
             "\"config\":{\"name\":\"a/b\",\"units\":2,\"batch_input_shape\":[null,3]%s}}]}",
             members);
    return map_text(text);
}

Test(keras_map, forms_of_values)
{
    tp_keras_model model = map_dense("");
    expect_json(&model, "{\"name\":\"model\",\"inputs\":[{\"name\":\"input\",\"shape\":[3],"
                        "\"dtype\":\"float32\"}],\"layers\":[{\"name\":\"a_b\",\"type\":\"Dense\","
                        "\"units\":2}],\"outputs\":[\"a_b\"]}");
    expect_layer(&model, 0, "a_b", "layers/dense", "a/b");
    static const struct {
        const char *keras, *here;
    } cases[] = {
        {"\"kernel_initializer\":{\"class_name\":\"VarianceScaling\",\"config\":{\"scale\":1.0,"
         "\"mode\":\"fan_avg\",\"distribution\":\"uniform\",\"seed\":null}}",
         "\"kernel_initializer\":\"glorot_uniform\""},
        {"\"kernel_initializer\":{\"module\":\"keras.initializers\",\"class_name\":"
         "\"RandomNormal\",\"config\":{\"mean\":0.0,\"stddev\":0.02,\"seed\":3},"
         "\"registered_name\":null}",
         "\"kernel_initializer\":{\"type\":\"random_normal\",\"mean\":0.0,\"stddev\":0.02}"},
        {"\"kernel_regularizer\":{\"class_name\":\"L2\",\"config\":{\"l2\":0.001}}",
         "\"kernel_regularizer\":{\"type\":\"L2\",\"l2\":0.001}"},
        {"\"kernel_constraint\":{\"class_name\":\"MaxNorm\",\"config\":{\"max_value\":2,"
         "\"axis\":0}}",
         "\"kernel_constraint\":{\"type\":\"MaxNorm\",\"max_value\":2,\"axis\":0}"},
        {"\"activation\":{\"module\":\"builtins\",\"class_name\":\"function\",\"config\":\"gelu\"}",
         "\"activation\":\"gelu\""},
        {"\"trainable\":false", "\"trainable\":false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[512];
        snprintf(members, sizeof members, ",%s", cases[i].keras);
        model = map_dense(members);
        cr_assert_not_null(model.json, "%s", cases[i].keras);
        cr_assert_not_null(strstr(squeeze(model.json), cases[i].here), "%s in %s", cases[i].here,
                           squeeze(model.json));
    }
    model = map_dense(",\"dtype\":{\"class_name\":\"DTypePolicy\",\"config\":{\"name\":"
                      "\"mixed_float16\"}}");
    cr_assert_str_eq(model.policy, "mixed_bfloat16");
    cr_assert_eq(model.findings.count, 1);
    cr_assert_not(model.findings.items[0].is_error);
}

Test(keras_map, open_dimensions_are_findings)
{
    const tp_keras_model model = map_text(
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"InputLayer\","
        "\"config\":{\"name\":\"x\",\"batch_shape\":[null,null,3]}},{\"class_name\":\"Dense\","
        "\"config\":{\"name\":\"d\",\"units\":2}}]}}");
    cr_assert_null(model.json);
    cr_assert_eq(model.findings.count, 1);
    cr_assert_not_null(strstr(model.findings.items[0].what, "dimension 1 of the input is open"));
    cr_assert_str_eq(model.findings.items[0].layer, "x");
}

static void expect_malformed(const char *text, const char *sentence)
{
    tp_json_document *document;
    tp_keras_model model;
    cr_assert_eq(tp_json_parse(text, strlen(text), "test", &document), TPUCL_OK);
    cr_assert_eq(tp_keras_map(tp_json_root(document), NULL, arena, &model), TPUCL_INVALID_CONFIG,
                 "%s", text);
    cr_assert_not_null(strstr(tpucl_last_error()->message, sentence), "'%s' in '%s'", sentence,
                       tpucl_last_error()->message);
    tp_json_destroy(document);
}

#define FUNCTIONAL(layers, inputs, outputs)                                                        \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"layers\":[" layers                \
    "],\"input_layers\":" inputs ",\"output_layers\":" outputs "}}"
#define INPUT(name)                                                                                \
    "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"" name                                  \
    "\",\"batch_shape\":[null,3]},\"inbound_nodes\":[]}"
#define CALLED(name, nodes)                                                                        \
    "{\"class_name\":\"ReLU\",\"config\":{\"name\":\"" name "\"},\"inbound_nodes\":" nodes "}"

Test(keras_map, broken_graphs)
{
    expect_malformed("{}", "class_name");
    expect_malformed("{\"class_name\":\"Sequential\",\"config\":[]}", "at least one layer");
    expect_malformed(FUNCTIONAL(INPUT("x") "," CALLED("a", "[[[\"b\",0,0,{}]]]") "," CALLED(
                                    "b", "[[[\"a\",0,0,{}]]]"),
                                "[[\"x\",0,0]]", "[[\"a\",0,0]]"),
                     "without circles");
    expect_malformed(FUNCTIONAL(INPUT("x") "," CALLED("a", "[[[\"x\",1,0,{}]]]"), "[[\"x\",0,0]]",
                                "[[\"a\",0,0]]"),
                     "call 1 of 'x'");
    expect_malformed(FUNCTIONAL(INPUT("x") "," INPUT("x"), "[[\"x\",0,0]]", "[[\"x\",0,0]]"),
                     "no other layer has");
}

Test(keras_map, forms_of_ends_and_calls)
{
    static const char expected[] =
        "{\"name\":\"f\",\"inputs\":[{\"name\":\"x\",\"shape\":[3],\"dtype\":\"float32\"}],"
        "\"layers\":[{\"name\":\"a\",\"type\":\"ReLU\"},{\"name\":\"b\",\"type\":\"ReLU\"}],"
        "\"outputs\":[\"b\"]}";
    /* layers in any order; ends flat, as lists, as objects; calls of every age */
    tp_keras_model model = map_text(FUNCTIONAL(
        CALLED("b", "[[[\"a\",0,0]]]") "," INPUT("x") "," CALLED("a", "[[[\"x\",0,0,{}]]]"),
        "[\"x\",0,0]", "[\"b\",0,0]"));
    expect_json(&model, expected);
    model = map_text(FUNCTIONAL(
        INPUT("x") "," CALLED(
            "a",
            "[{\"args\":[{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":"
            "[\"x\",0,0]}}],\"kwargs\":{\"training\":true,\"mask\":null}}]") "," CALLED("b",
                                                                                        "[[\"a\",0,"
                                                                                        "0,{}]]"),
        "{\"x\":[\"x\",0,0]}", "[[[\"b\",0,0]]]"));
    expect_json(&model, expected);
    model = map_text(FUNCTIONAL(INPUT("x") "," CALLED("a", "[[[\"x\",0,0,{\"mask\":3}]]]"),
                                "[[\"x\",0,0]]", "[[\"a\",0,0]]"));
    cr_assert_null(model.json);
    cr_assert_not_null(strstr(model.findings.items[0].what, "mask"), "%s",
                       model.findings.items[0].what);
}

#define NESTED(class, nodes)                                                                       \
    "{\"class_name\":\"" class "\",\"config\":{\"name\":\"m\",\"layers\":[" INPUT("y") "," CALLED( \
        "r", "[[[\"y\",0,0,{}]]]") "],\"input_layers\":[[\"y\",0,0]],\"output_layers\":"           \
                                   "[[\"r\",0,0]]},\"name\":\"m\",\"inbound_nodes\":" nodes "}"
#define TENSOR(name, node)                                                                         \
    "{\"args\":[{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":[\"" name       \
    "\"," #node ",0]}}],\"kwargs\":{}}"

/* Keras 3 numbers calls of a nested model from 0 in calls, and from 1 at the ends; Keras 2 from 1. */
Test(keras_map, numbers_of_nested_calls)
{
    static const struct {
        const char *text, *outputs;
    } cases[] = {
        {FUNCTIONAL(INPUT("x") "," NESTED("Functional",
                                          "[" TENSOR("x", 0) "," TENSOR(
                                              "a", 0) "]") "," CALLED("a", "[" TENSOR("m", 0) "]"),
                    "[[\"x\",0,0]]", "[[\"m\",2,0]]"),
         "\"outputs\":[\"m_again\"]}"},
        {FUNCTIONAL(INPUT("x") "," NESTED("Functional",
                                          "[" TENSOR("x", 0) "," TENSOR(
                                              "a", 0) "]") "," CALLED("a", "[" TENSOR("m", 0) "]"),
                    "[[\"x\",0,0]]", "[[\"m\",1,0],[\"m\",2,0]]"),
         "\"outputs\":[\"m\",\"m_again\"]}"},
        {FUNCTIONAL(
             INPUT("x") "," NESTED("Model", "[[[\"x\",0,0,{}]],[[\"a\",0,0,{}]]]") "," CALLED(
                 "a", "[[[\"m\",1,0,{}]]]"),
             "[[\"x\",0,0]]", "[[\"m\",2,0]]"),
         "\"outputs\":[\"m_again\"]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tp_keras_model model = map_text(cases[i].text);
        cr_assert_not_null(model.json);
        const char *text = squeeze(model.json);
        cr_assert_not_null(strstr(text, cases[i].outputs), "case %zu: %s", i, text);
        cr_assert_not_null(strstr(text, "{\"layer\":\"m\",\"name\":\"m_again\"}"), "%s", text);
    }
}

/* What an attention is called with: a mask is a fourth tensor here, a causal one an argument of the layer. */
Test(keras_map, masks_of_attention)
{
    tp_keras_model model = map_text(
        FUNCTIONAL(INPUT("x") "," INPUT("m") "," CALLED(
                       "a", "[[[\"x\",0,0,{\"value\":[\"x\",0,0],\"attention_mask\":[\"m\",0,0],"
                            "\"use_causal_mask\":true,\"return_attention_scores\":false}]]]"),
                   "[[\"x\",0,0],[\"m\",0,0]]", "[[\"a\",0,0]]"));
    cr_assert_not_null(model.json);
    const char *text = squeeze(model.json);
    cr_assert_not_null(
        strstr(text, "\"use_causal_mask\":true,\"inputs\":[\"x\",\"x\",\"x\",\"m\"]"), "%s", text);
}
