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
    int32_t cores;
} targets_case;

static tpucl_status create(const targets_case *c, tp_session **out_session)
{
    char text[8192];
    tp_config *config = NULL;
    snprintf(text, sizeof text,
             "{'topology': 'v2-8', 'model': %s, 'precision': 'float32', 'seed': 3, 'steps': 3,"
             " 'loss': {'name': 'sparse_categorical_crossentropy', 'from_logits': true},"
             " 'losses': %s, 'optimizer': 'SGD', 'global_batch': 8,"
             " 'data': {'dataset': 'npy', 'folder': '%s', 'train': {%s}, 'test': {%s}}}",
             c->model, c->losses, folder, c->data, c->data);
    for (char *t = text; *t; t++)
        if (*t == '\'') *t = '"';
    tpucl_status status = tp_config_parse(text, strlen(text), "test.json", NULL, 0, &config);
    if (status != TPUCL_OK) return status;
    const tp_session_options options = {.config = config, .selector = "reference"};
    return tp_session_create(&options, out_session);
}

static tp_session_epoch train(const char *losses)
{
    const targets_case c = {model, data, losses, 8};
    tp_session *session = NULL;
    int32_t count = 0;
    cr_assert_eq(create(&c, &session), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tp_session_output_count(session), 2);
    cr_assert_str_eq(tp_session_output_name(session, 0), "box");
    cr_assert_eq(tp_session_train(session, NULL), TPUCL_OK, "%s", tpucl_last_error()->message);
    const tp_session_epoch epoch = tp_session_epochs(session, &count)[0];
    cr_assert(count == 2 && epoch.steps == 2 && epoch.examples == EXAMPLES);
    tp_session_destroy(session);
    return epoch;
}

/* The second batch of the epoch has 4 of 8 examples: padding counts for nothing in any output. */
Test(targets, losses_of_each_output)
{
    const tp_session_epoch e = train("{'box': {'name': 'mean_squared_error', 'weight': 0.25}}");
    const double box = e.train_outputs[0].loss, kind = e.train_outputs[1].loss;
    cr_assert(box > 0.05 && box < 2 && kind > 1 && kind < 3, "%g %g", box, kind);
    cr_assert(e.train_outputs[0].accuracy == -1);
    cr_assert(e.train_outputs[1].accuracy >= 0 && e.train_outputs[1].accuracy <= 1);
    cr_assert(fabs(e.train_loss - (0.25 * box + kind)) < 1e-6, "%.9g, expected %.9g", e.train_loss,
              0.25 * box + kind);
    const tp_session_epoch other = train("{'box': {'name': 'huber', 'delta': 0.125}}");
    cr_assert(other.train_outputs[0].loss < box / 2, "huber's delta means nothing");
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
        {model, data, "{'bax': 'huber'}", 8},
        {model, data, "{'box': {'name': 'huber', 'gamma': 2}}", 8},
        {model, data, "{'box': {'weight': 2}}", 8},
        {model, data, "{}", 8},
        {model,
         "'inputs': {'image': 'image.npy'}, 'labels': {'kind': 'kind.npy', 'box': 'box.npy'}",
         losses, 8},
        {model,
         "'inputs': {'image': 'image.npy', 'words': 'words.npy'}, 'labels': {'kind': 'kind.npy'}",
         losses, 8},
        {model,
         "'inputs': {'image': 'image.npy', 'words': 'short.npy'}, 'labels': {'kind': 'kind.npy'}",
         losses, 8},
        {model, "'inputs': {'image': 3}, 'labels': {'kind': 'kind.npy'}", losses, 8},
    };
    static const char *const parts[] = {"did you mean 'box'?",
                                        "the loss 'huber' has no argument 'gamma'",
                                        "losses.box",
                                        "labels of box are f32",
                                        "the data have no array 'words'",
                                        "the data have no labels for the output 'box'",
                                        "has 12 examples and",
                                        "data.train.inputs.image"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_problem(&cases[i], parts[i]);
}
