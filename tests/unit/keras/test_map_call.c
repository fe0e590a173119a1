/* SPDX-License-Identifier: Apache-2.0
 * What layers and functions of keras.ops are called with: which functions become layers, which are refused and why
 * (tests/golden/keras/functions.keras has the same with numbers). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "keras/map.h"

#define TENSOR                                                                                     \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,6,4],\"dtype\":\"float32\"," \
    "\"keras_history\":[\"x\",0,0]}}"
#define ALL "{\"class_name\":\"__slice__\",\"config\":{\"start\":null,\"stop\":null,\"step\":null}}"

/* A model of an input x, [6, 4], and one row. The caller destroys *out_arena. */
static tp_keras_model map_row(const char *module, const char *kind, const char *config,
                              const char *calls, tp_arena **out_arena)
{
    static char text[8192];
    tp_json_document *document;
    tp_keras_model model;
    snprintf(
        text, sizeof text,
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"
        "\"InputLayer\",\"name\":\"x\",\"config\":{\"batch_shape\":[null,6,4],\"dtype\":"
        "\"float32\",\"name\":\"x\"},\"inbound_nodes\":[]},{\"module\":\"%s\",\"class_name\":"
        "\"%s\",\"name\":\"row\",\"config\":{\"name\":\"row\"%s},\"inbound_nodes\":[%s]}],"
        "\"input_layers\":[\"x\",0,0],\"output_layers\":[\"row\",0,0]}}",
        module, kind, config, calls);
    cr_assert_eq(tp_arena_create(0, out_arena), TPUCL_OK);
    cr_assert_eq(tp_json_parse(text, strlen(text), "test", &document), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_eq(tp_keras_map(tp_json_root(document), NULL, *out_arena, &model), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_json_destroy(document);
    return model;
}

/* The only finding has this rule and says this; NULL: there is none. */
static void expect_finding(const char *module, const char *kind, const char *config,
                           const char *calls, const char *rule, const char *part)
{
    tp_arena *arena;
    const tp_keras_model model = map_row(module, kind, config, calls, &arena);
    cr_assert_eq(model.findings.count, rule != NULL, "%s: %d findings, the first: %s", kind,
                 model.findings.count, model.findings.count ? model.findings.items[0].what : "");
    if (rule) {
        const tp_keras_finding *found = &model.findings.items[0];
        cr_assert_str_eq(tp_keras_rule_name(found->rule), rule);
        cr_assert_str_eq(found->layer, "row");
        cr_assert_not_null(strstr(found->what, part), "%s: %s", kind, found->what);
        cr_assert(found->is_error && *found->remedy);
        cr_assert_null(model.json);
    } else {
        cr_assert_not_null(strstr(model.json, part), "%s: %s", kind, model.json);
    }
    tp_arena_destroy(arena);
}

static void expect_function(const char *kind, const char *config, const char *arguments,
                            const char *rule, const char *part)
{
    char call[2048];
    snprintf(call, sizeof call, "{\"args\":[%s],\"kwargs\":{}}", arguments);
    expect_finding("keras.src.ops.numpy", kind, config, call, rule, part);
}

Test(keras_map_call, functions_that_become_layers)
{
    expect_function("Add", "", TENSOR ",1.5", NULL, "\"offset\": 1.5");
    expect_function("Subtract", "", "2," TENSOR, NULL, "\"scale\": -1");
    expect_function("Reshape", ",\"newshape\":[null,24]", TENSOR, NULL, "\"target_shape\": [24]");
    expect_function("Transpose", ",\"axes\":[0,2,1]", TENSOR, NULL, "\"dims\": [2, 1]");
    expect_function("GetItem", "", TENSOR ",[" ALL ",-1]", NULL, "\"cropping\": [[5, 0], [0, 0]");
    expect_function("GetItem", "", TENSOR ",[{\"class_name\":\"__ellipsis__\",\"config\":{}},0]",
                    NULL, "\"cropping\": [[0, 0], [0, 3]");
    expect_function("Square", "", TENSOR, NULL, "\"inputs\": [\"x\", \"x\"]");
}

/* Batches mixed, steps, axes and places that no layer has: never a guess. */
Test(keras_map_call, functions_that_no_layer_does)
{
    static const char no_layer[] = "no-such-layer";
    expect_function("Reshape", ",\"newshape\":[-1,12]", TENSOR, no_layer, "Reshape of keras.ops");
    expect_function("Reshape", ",\"newshape\":[24,-1]", TENSOR, no_layer, "Reshape");
    expect_function("Transpose", ",\"axes\":[1,0,2]", TENSOR, no_layer, "Transpose");
    expect_function("Mean", ",\"axis\":2,\"keepdims\":false", TENSOR, no_layer, "Mean");
    expect_function("Mean", ",\"axis\":null,\"keepdims\":false", TENSOR, no_layer, "Mean");
    expect_function("TrueDivide", "", "1," TENSOR, no_layer, "TrueDivide");
    expect_function("TrueDivide", "", TENSOR ",0", no_layer, "TrueDivide");
    expect_function("Concatenate", ",\"axis\":0", "[" TENSOR "," TENSOR "]", no_layer, "Concat");
    expect_function("Cast", ",\"dtype\":\"int32\"", TENSOR, no_layer, "Cast");
    expect_function("GetItem", "", TENSOR ",[0]", no_layer, "GetItem");
    expect_function("GetItem", "", TENSOR ",[" ALL ",6]", no_layer, "GetItem");
    expect_function("GetItem", "", TENSOR ",[" ALL "," ALL "," ALL "," ALL "]", no_layer, "Get");
    expect_function("GetItem", "",
                    TENSOR ",[" ALL ",{\"class_name\":\"__slice__\",\"config\":{\"start\":0,"
                           "\"stop\":6,\"step\":2}}]",
                    no_layer, "GetItem");
    expect_function("Sort", ",\"axis\":-1", TENSOR, no_layer, "Sort");
    expect_function("Where", "", TENSOR "," TENSOR ",0.0", "data-dependent-shape", "by a mask");
    expect_function("LogicalAnd", "", TENSOR "," TENSOR, no_layer, "it makes a mask");
    expect_function("Nonzero", "", TENSOR, "data-dependent-shape", "as many places");
}

static void expect_tensorflow(const char *function, const char *rule)
{
    char config[128];
    snprintf(config, sizeof config, ",\"function\":\"%s\"", function);
    expect_finding("keras.layers", "TFOpLambda", config, "[[\"x\",0,0,{}]]", rule, "");
}

Test(keras_map_call, functions_of_tensorflow)
{
    expect_tensorflow("boolean_mask", "data-dependent-shape");
    expect_tensorflow("unique", "data-dependent-shape");
    expect_tensorflow("compat.v1.where", "data-dependent-shape");
    expect_tensorflow("strings.split", "string-op");
    expect_tensorflow("py_function", "python-code");
    expect_tensorflow("math.cumsum", "no-such-layer");
    expect_finding("keras.layers", "TFOpLambda", ",\"function\":\"math.greater_equal\"",
                   "[[\"x\",0,0,{}]]", "no-such-layer", "it makes a mask");
    expect_finding("keras.layers", "TFOpLambda", ",\"function\":\"math.unique_once\"",
                   "[[\"x\",0,0,{}]]", "no-such-layer", "TensorFlow function math.unique_once");
}

#define CALL(kwargs) "{\"args\":[" TENSOR "],\"kwargs\":{" kwargs "}}"
#define OLD_CALL(kwargs) "[[\"x\",0,0,{" kwargs "}]]"

/* Keras 3 writes training=False for every Dropout, and lets the step decide whatever is written. */
Test(keras_map_call, what_is_training)
{
    static const char layers[] = "keras.layers", frozen[] = ",\"trainable\":false";
    static const char rule[] = "no-such-argument";
    static const char off[] = OLD_CALL("\"training\":false"), on[] = OLD_CALL("\"training\":true");
    expect_finding(layers, "Dense", "", off, NULL, "Dense");
    expect_finding(layers, "BatchNormalization", frozen, off, NULL, "Batch");
    expect_finding(layers, "BatchNormalization", "", off, rule, "training=False");
    expect_finding(layers, "BatchNormalization", frozen, on, rule, "training=True");
    expect_finding(layers, "Dropout", frozen, on, rule, "training=True");
    expect_finding(layers, "Dropout", "", OLD_CALL("\"training\":null"), NULL, "Dropout");
    expect_finding(layers, "Dropout", "", CALL("\"training\":false"), NULL, "Dropout");
    expect_finding(layers, "BatchNormalization", "", CALL("\"training\":true"), NULL, "Batch");
}

Test(keras_map_call, attention_that_is_causal_in_one_call_alone)
{
    static const char causal[] =
        "{\"args\":[" TENSOR "," TENSOR "],\"kwargs\":{\"use_causal_mask\":true}}";
    static const char both[] =
        "{\"args\":[" TENSOR "," TENSOR "],\"kwargs\":{\"use_causal_mask\":true}},"
        "{\"args\":[" TENSOR "," TENSOR "],\"kwargs\":{\"use_causal_mask\":false}}";
    expect_finding("keras.layers", "MultiHeadAttention", "", causal, NULL,
                   "\"use_causal_mask\": true");
    expect_finding("keras.layers", "MultiHeadAttention", "", both, "no-such-argument",
                   "use_causal_mask and without");
}

/* tests/golden/keras/masked.keras has the masks that come with the inputs anyway. */
Test(keras_map_call, masks_that_nothing_makes)
{
    static const char part[] = "a mask that its input does not come with";
    expect_finding("keras.layers", "LSTM", ",\"units\":2", CALL("\"mask\":" TENSOR),
                   "no-such-argument", part);
    expect_finding("keras.layers", "MultiHeadAttention", "", CALL("\"key_mask\":" TENSOR),
                   "no-such-argument", part);
    expect_finding("keras.layers", "LSTM", ",\"units\":2", CALL("\"mask\":[" TENSOR ",null]"),
                   "no-such-argument", part);
    expect_finding("keras.layers", "LSTM", ",\"units\":2", CALL("\"mask\":3"), "no-such-argument",
                   "mask = ");
    expect_finding("keras.layers", "LSTM", ",\"units\":2", CALL("\"mask\":null"), NULL, "LSTM");
}
