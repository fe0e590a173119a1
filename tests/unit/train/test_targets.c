/* SPDX-License-Identifier: Apache-2.0
 * Models with several inputs and outputs, from named .npy files to the losses of each output, in the
 * reference interpreter; and every mistake of such a configuration.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "golden/golden.h"
#include "train/session.h"

enum { EXAMPLES = 12 };
static char folder[] = "/tmp/tpucl-targets-XXXXXX";

/* An array [EXAMPLES, ...] of 4-byte elements. */
static void put(const char *name, const char *descr, const char *shape, const void *elements,
                size_t count)
{
    char file[16384], path[128];
    char header[118];
    memset(header, ' ', sizeof header);
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 descr, shape);
    header[length] = ' ';
    header[sizeof header - 1] = '\n';
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, header, sizeof header);
    memcpy(file + 128, elements, 4 * count);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    cr_assert_eq(tp_file_write_atomic(path, file, 128 + 4 * count), TPUCL_OK);
}

static void make_folder(void)
{
    float values[EXAMPLES * 6];
    int32_t classes[EXAMPLES], words[EXAMPLES * 3];
    cr_assert(mkdtemp(folder));
    for (uint32_t i = 0; i < EXAMPLES * 6; i++)
        values[i] = golden_value(5, i);
    for (uint32_t i = 0; i < EXAMPLES * 3; i++)
        words[i] = (int32_t)(i % 7);
    for (int32_t i = 0; i < EXAMPLES; i++)
        classes[i] = i % 4;
    put("image", "<f4", "(12, 2, 3)", values, EXAMPLES * 6);
    put("words", "<i4", "(12, 3)", words, EXAMPLES * 3);
    put("kind", "<i4", "(12,)", classes, EXAMPLES);
    put("box", "<f4", "(12, 2)", values + 7, EXAMPLES * 2);
    put("short", "<f4", "(11, 2)", values, 22);
    /* 1 where the sum of the box is above 0, the same three times as large, and one below 0 */
    float weights[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++)
        weights[i] = values[7 + 2 * i] + values[8 + 2 * i] > 0;
    put("some", "<f4", "(12,)", weights, EXAMPLES);
    for (int i = 0; i < EXAMPLES; i++)
        weights[i] *= 3;
    put("three", "<f4", "(12,)", weights, EXAMPLES);
    weights[5] = -1;
    put("negative", "<f4", "(12,)", weights, EXAMPLES);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(targets, .init = make_folder, .fini = remove_folder);

static const char model[] =
    "{'inputs': [{'name': 'words', 'dtype': 'int32'}, {'name': 'image'}],"
    " 'layers': [{'type': 'Flatten', 'inputs': 'image'},"
    "            {'type': 'Dense', 'name': 'hidden', 'units': 5, 'activation': 'tanh'},"
    "            {'type': 'Add', 'name': 'pairs', 'inputs': ['words', 'words']},"
    "            {'type': 'Rescaling', 'name': 'small', 'scale': 0.1},"
    "            {'type': 'Concatenate', 'name': 'all', 'inputs': ['hidden', 'small']},"
    "            {'type': 'Dense', 'name': 'kind', 'units': 4},"
    "            {'type': 'Dense', 'name': 'box', 'units': 2, 'inputs': 'all'}],"
    " 'outputs': ['box', 'kind']}";
static const char data[] = "'inputs': {'image': 'image.npy', 'words': 'words.npy'},"
                           "'labels': {'kind': 'kind.npy', 'box': 'box.npy'}";

typedef struct targets_case {
    const char *model, *data, *losses;
    const char *metrics; /* NULL: none are said */
} targets_case;

static tpucl_status create(const targets_case *c, tp_session **out_session)
{
    char text[8192];
    tp_config *config = NULL;
    snprintf(text, sizeof text,
             "{'topology': 'v2-8', 'model': %s, 'precision': 'float32', 'seed': 3, 'steps': 3,"
             " 'loss': {'name': 'sparse_categorical_crossentropy', 'from_logits': true},"
             " 'losses': %s, %s%s%s 'optimizer': 'SGD', 'global_batch': 8,"
             " 'data': {'dataset': 'npy', 'folder': '%s', 'train': {%s}, 'test': {%s}}}",
             c->model, c->losses, c->metrics ? "'metrics': " : "", c->metrics ? c->metrics : "",
             c->metrics ? "," : "", folder, c->data, c->data);
    for (char *t = text; *t; t++)
        if (*t == '\'') *t = '"';
    tpucl_status status = tp_config_parse(text, strlen(text), "test.json", NULL, 0, &config);
    if (status != TPUCL_OK) return status;
    const tp_session_options options = {.config = config, .selector = "reference"};
    return tp_session_create(&options, out_session);
}

/* The first epoch's results by name. */
typedef struct results {
    double loss;
    int32_t count;
    char names[TP_SESSION_MAX_METRICS][64];
    double values[TP_SESSION_MAX_METRICS];
} results;

static results train_model(const char *text, const char *arrays, const char *losses,
                           const char *metrics)
{
    const targets_case c = {text, arrays, losses, metrics};
    tp_session *session = NULL;
    int32_t count = 0;
    cr_assert_eq(create(&c, &session), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_session_train(session, NULL), TPUCL_OK, "%s", tpucl_last_error()->message);
    const tp_session_epoch epoch = tp_session_epochs(session, &count)[0];
    cr_assert(count == 2 && epoch.steps == 2 && epoch.examples == EXAMPLES);
    cr_assert(epoch.train_accuracy == -1);
    results r = {.loss = epoch.train_loss, .count = tp_session_metric_count(session)};
    for (int32_t i = 0; i < r.count; i++) {
        snprintf(r.names[i], sizeof r.names[i], "%s", tp_session_metric_name(session, i));
        r.values[i] = epoch.train_metrics[i];
    }
    tp_session_destroy(session);
    return r;
}

static results train_on(const char *arrays, const char *losses, const char *metrics)
{
    return train_model(model, arrays, losses, metrics);
}

static results train(const char *losses, const char *metrics)
{
    return train_on(data, losses, metrics);
}

static double value(const results *r, const char *name)
{
    for (int32_t i = 0; i < r->count; i++)
        if (strcmp(r->names[i], name) == 0) return r->values[i];
    cr_assert_fail("there is no '%s'", name);
    return 0;
}

static void expect_near(double found, double expected, const char *what)
{
    cr_assert(fabs(found - expected) <= 2e-6 * fmax(1, fabs(expected)), "%s: %.9g, expected %.9g",
              what, found, expected);
}

/* The second batch of the epoch has 4 of 8 examples: padding counts for nothing in any output. */
Test(targets, losses_of_each_output)
{
    const results r = train("{'box': {'name': 'mean_squared_error', 'weight': 0.25}}", NULL);
    const double box = value(&r, "box/loss"), kind = value(&r, "kind/loss");
    cr_assert(box > 0.05 && box < 2 && kind > 1 && kind < 3, "%g %g", box, kind);
    cr_assert(r.count == 3);
    cr_assert(value(&r, "kind/accuracy") >= 0 && value(&r, "kind/accuracy") <= 1);
    expect_near(r.loss, 0.25 * box + kind, "the sum");
    const results other = train("{'box': {'name': 'huber', 'delta': 0.125}}", NULL);
    cr_assert(value(&other, "box/loss") < box / 2, "huber's delta means nothing");
}

Test(targets, metrics_of_each_output)
{
    const results r =
        train("{'box': 'mean_squared_error'}",
              "{'box': ['mean_absolute_error', 'mean_squared_error',"
              "   {'name': 'expression', 'label': 'far', 'expression': 'abs(y_pred - y_true)'},"
              "   {'name': 'expression', 'label': 'above', 'expression': 'abs(y_pred - y_true)',"
              "    'weight': 'y_true > 0'},"
              "   {'name': 'expression', 'label': 'below', 'expression': 'abs(y_pred - y_true)',"
              "    'weight': 'y_true <= 0'},"
              "   {'name': 'expression', 'label': 'share', 'expression': 'y_true > 0'}],"
              " 'kind': ['accuracy', {'name': 'accuracy', 'label': 'again'},"
              "   {'name': 'expression', 'expression': 'argmax(y_pred) == y_true'}]}");
    cr_assert(r.count == 11, "%d", r.count);
    const double share = value(&r, "box/share");
    expect_near(value(&r, "box/loss"), value(&r, "box/mean_squared_error"), "the loss");
    expect_near(value(&r, "box/far"), value(&r, "box/mean_absolute_error"), "an expression");
    expect_near(share * value(&r, "box/above") + (1 - share) * value(&r, "box/below"),
                value(&r, "box/far"), "the two parts of a mask");
    cr_assert(fabs(value(&r, "box/above") - value(&r, "box/below")) > 1e-3);
    cr_assert(value(&r, "kind/expression") == value(&r, "kind/accuracy"));
    cr_assert(value(&r, "kind/again") == value(&r, "kind/accuracy"));
}

/* The same losses as formulas. */
Test(targets, losses_that_are_expressions)
{
    const results plain = train("{'box': 'mean_squared_error'}", "['accuracy']");
    const results r =
        train("{'box': {'name': 'expression', 'expression': 'square(y_pred - y_true)'},"
              " 'kind': {'name': 'expression', 'expression':"
              "  'log(sum(exp(y_pred), axis=-1)) - sum(y_pred * one_hot(y_true, 4), axis=-1)'}}",
              "['accuracy']");
    expect_near(value(&r, "box/loss"), value(&plain, "box/loss"), "box");
    expect_near(value(&r, "kind/loss"), value(&plain, "kind/loss"), "kind");
    cr_assert(value(&r, "kind/accuracy") == value(&plain, "kind/accuracy"));
    cr_assert(r.count == 3 && plain.count == 3);
    /* a mask of a loss, and the mask in the formula */
    const results masked = train(
        "{'box': {'name': 'mean_squared_error', 'mask': 'sum(y_true, axis=-1) > 0'}}",
        "{'box': [{'name': 'expression', 'expression': 'mean(square(y_pred - y_true), axis=-1)',"
        "  'weight': 'sum(y_true, axis=-1) > 0'},"
        " {'name': 'expression', 'label': 'as the loss',"
        "  'expression': 'mean(square(y_pred - y_true), axis=-1)'}]}");
    expect_near(value(&masked, "box/loss"), value(&masked, "box/expression"), "the mask");
    expect_near(value(&masked, "box/loss"), value(&masked, "box/as the loss"), "what counts");
    cr_assert(fabs(value(&masked, "box/loss") - value(&plain, "box/loss")) > 1e-3);
}

#define WEIGHTED(file)                                                                             \
    "'inputs': {'image': 'image.npy', 'words': 'words.npy'},"                                      \
    "'labels': {'kind': 'kind.npy', 'box': 'box.npy'}, 'weights': '" file ".npy'"

/* Examples that weigh nothing are as good as masked; a factor of all weights means nothing. */
Test(targets, weights_of_examples)
{
    static const char metrics[] = "{'box': ['mean_absolute_error', {'name': 'expression', "
                                  "'expression': 'sum(y_true, axis=-1)',"
                                  "         'weight': 'sum(y_true, axis=-1) > -9'}]}";
    const results masked = train(
        "{'box': {'name': 'mean_squared_error', 'mask': 'sum(y_true, axis=-1) > 0'},"
        " 'kind': {'name': 'sparse_categorical_crossentropy', 'from_logits': true, 'weight': 0}}",
        "{'box': ['mean_absolute_error', {'name': 'expression', 'expression': 'sum(y_true, "
        "axis=-1)',"
        "         'weight': 'sum(y_true, axis=-1) > 0'}]}");
    const results plain = train("{'box': 'mean_squared_error'}", metrics);
    for (int i = 0; i < 2; i++) {
        const results r = train_on(
            i == 0 ? WEIGHTED("some") : WEIGHTED("three"),
            "{'box': 'mean_squared_error', 'kind': {'name': 'sparse_categorical_crossentropy',"
            " 'from_logits': true, 'weight': 0}}",
            metrics);
        expect_near(r.loss, value(&r, "box/loss"), "the whole");
        expect_near(value(&r, "box/loss"), value(&masked, "box/loss"), "loss");
        expect_near(value(&r, "box/expression"), value(&masked, "box/expression"), "expression");
        expect_near(value(&r, "box/mean_absolute_error"), value(&masked, "box/mean_absolute_error"),
                    "metric");
        cr_assert(fabs(value(&r, "box/loss") - value(&plain, "box/loss")) > 1e-3);
    }
}

/* The same of a model with one output; its loss has the weight of `losses`, too. */
Test(targets, weights_of_examples_of_one_output)
{
    static const char one[] = "{'inputs': [{'name': 'image'}], 'layers': [{'type': 'Flatten'},"
                              " {'type': 'Dense', 'name': 'box', 'units': 2}]}";
    static const char arrays[] = "'inputs': {'image': 'image.npy'}, 'labels': {'box': 'box.npy'}";
    static const char weighted[] = "'inputs': {'image': 'image.npy'}, 'labels': {'box': 'box.npy'},"
                                   "'weights': 'three.npy'";
    const results masked = train_model(
        one, arrays, "{'box': {'name': 'mean_squared_error', 'mask': 'sum(y_true, axis=-1) > 0'}}",
        "['mean_absolute_error']");
    const results r = train_model(one, weighted, "{'box': 'mean_squared_error'}",
                                  "{'box': 'mean_absolute_error'}");
    const results half = train_model(
        one, weighted,
        "{'box': {'name': 'expression', 'expression': 'square(y_pred - y_true)', 'weight': 0.5}}",
        "[]");
    const results plain = train_model(one, arrays, "{'box': 'mean_squared_error'}", "[]");
    cr_assert(r.count == 1 && plain.count == 0);
    expect_near(r.loss, masked.loss, "loss");
    expect_near(value(&r, "mean_absolute_error"), value(&masked, "mean_absolute_error"), "metric");
    cr_assert(fabs(r.loss - plain.loss) > 1e-3);
    cr_assert(half.loss > 0.5 * r.loss && half.loss < 0.7 * r.loss, "%g of %g", half.loss, r.loss);
}

static void expect_problem(const targets_case *c, const char *part)
{
    tp_session *session = NULL;
    const tpucl_status status = create(c, &session);
    cr_assert_neq(status, TPUCL_OK, "%s", part);
    cr_assert(strstr(tpucl_last_error()->message, part), "'%s' is not in: %s", part,
              tpucl_last_error()->message);
}

Test(targets, mistakes)
{
    static const char losses[] = "{'box': 'mean_squared_error'}";
    static const targets_case cases[] = {
        {model, data, "{'bax': 'huber'}", NULL},
        {model, data, "{'box': {'name': 'huber', 'gamma': 2}}", NULL},
        {model, data, "{'box': {'weight': 2}}", NULL},
        {model, data, "{}", NULL},
        {model,
         "'inputs': {'image': 'image.npy'}, 'labels': {'kind': 'kind.npy', 'box': 'box.npy'}",
         losses, NULL},
        {model,
         "'inputs': {'image': 'image.npy', 'words': 'words.npy'}, 'labels': {'kind': 'kind.npy'}",
         losses, NULL},
        {model,
         "'inputs': {'image': 'image.npy', 'words': 'short.npy'}, 'labels': {'kind': 'kind.npy'}",
         losses, NULL},
        {model, "'inputs': {'image': 3}, 'labels': {'kind': 'kind.npy'}", losses, NULL},
        {model, data, losses, "{'bax': ['accuracy']}"},
        {model, data, losses, "['mean_absolute_error']"},
        {model, data, "{'box': {'name': 'expression', 'expression': 'mean(y_pred)'}}", NULL},
        {model, data, "{'box': {'name': 'expression', 'expression': 'y_pred > y_true'}}", NULL},
        {model, data, "{'box': {'name': 'mean_squared_error', 'mask': 'y_true'}}", NULL},
        {model, WEIGHTED("negative"), losses, NULL},
        {model, WEIGHTED("box"), losses, NULL},
        {model, WEIGHTED("kind"), losses, NULL},
    };
    static const char *const parts[] = {"did you mean 'box'?",
                                        "the loss 'huber' has no argument 'gamma'",
                                        "losses.box",
                                        "labels of box are f32",
                                        "the data have no array 'words'",
                                        "the data have no labels for the output 'box'",
                                        "has 12 examples and",
                                        "data.train.inputs.image",
                                        "'metrics.bax[0]' names no output of the model, did you "
                                        "mean 'box'?",
                                        "metrics[0] of 'kind': the metric 'mean_absolute_error' "
                                        "compares numbers",
                                        "losses.box.expression, column 1: 'mean' goes over the "
                                        "examples of a batch (axis 0)",
                                        "losses.box.expression gives a mask",
                                        "losses.box.mask gives f32",
                                        "example 5 has the weight -1 in",
                                        "expected one f4 or f8 for each example",
                                        "expected one f4 or f8 for each example"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_problem(&cases[i], parts[i]);
}

/* Each with its place, all in one go. */
Test(targets, mistakes_in_expressions)
{
    const targets_case c = {
        model, data,
        "{'box': {'name': 'expression', 'expression': 'abs(y_pred - y_treu)'},"
        " 'kind': {'name': 'expression', 'expression': 'y_pred * one_hot(y_true, 5)'}}",
        "{'box': [{'name': 'expression', 'expression': 'y_pred', 'weight': 'y_true >'}],"
        " 'kind': [{'name': 'expression', 'expression': 'y_true[..., 0]'}]}"};
    static const char *const parts[] = {
        "losses and metrics has 4 problems",
        "losses.box.expression, column 14: there is no 'y_treu', did you mean 'y_true'",
        "\n    abs(y_pred - y_treu)\n                 ^",
        "losses.kind.expression, column 8: ",
        "metrics.box[0].weight, column 9: expected a value, found the end",
        "metrics.kind[0].expression, column 7: '[...]' goes over the examples"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect_problem(&c, parts[i]);
}
