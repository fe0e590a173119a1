/* SPDX-License-Identifier: Apache-2.0
 * Runs through the public calls: stopped and gone on with, asked for what they cannot do, options that
 * are wrong. On the default device and in the reference interpreter. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tpucl/run.h>
#include <tpucl/tools.h>
#include <unistd.h>

enum { EXAMPLES = 8, STEPS_PER_EPOCH = 4, EPOCHS = 2 };

static char folder[] = "/tmp/tpucl-run-XXXXXX";

static const char config[] =
    "{\"topology\": \"pair.json\", \"model\": {\"layers\": [{\"type\": \"Dense\", \"units\": 2}]},"
    " \"loss\": {\"name\": \"sparse_categorical_crossentropy\", \"from_logits\": true},"
    " \"optimizer\": \"SGD\", \"precision\": \"float32\", \"per_core_batch\": 1, \"epochs\": 2,"
    " \"steps_per_loop\": 1, \"data\": {\"dataset\": \"idx\", \"train\": {\"inputs\": \"x\", "
    "\"labels\": \"y\"}}}";

static void put(const char *name, const char *bytes, size_t length)
{
    cr_assert_eq(tpucl_file_write(name, bytes, length), TPUCL_OK);
}

static void make_files(void)
{
    static const char x[] = "\0\0\x08\x02\0\0\0\x08\0\0\0\x02"
                            "abcdefghABCDEFGH";
    static const char y[] = "\0\0\x08\x01\0\0\0\x08\0\1\0\1\0\1\0\1";
    static const char pair[] = "{\"name\": \"pair\", \"cores\": 2}";
    cr_assert(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    put("x", x, sizeof x - 1);
    put("y", y, sizeof y - 1);
    put("pair.json", pair, sizeof pair - 1);
}

static void remove_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(run, .init = make_files, .fini = remove_files);

static tpucl_run *open_run(const char *device)
{
    tpucl_run *run = NULL;
    tpucl_run_options options = tpucl_run_options_default();
    options.config_text = config;
    options.device = device;
    cr_assert_eq(tpucl_run_create(&options, &run), TPUCL_OK, "%s", tpucl_last_error()->message);
    return run;
}

static void stop(void *user, const tpucl_progress *progress)
{
    (void)progress;
    tpucl_run_stop(user);
}

static void check_stopped_after_every_step(const char *device)
{
    tpucl_run_result whole, parts;
    char expected[65];
    tpucl_run *run = open_run(device);
    cr_assert_eq(tpucl_run_train(run, NULL, &whole), TPUCL_OK);
    memcpy(expected, whole.params_sha256, sizeof expected);
    cr_assert_eq(whole.epoch_count, EPOCHS);
    tpucl_run_destroy(run);

    run = open_run(device);
    tpucl_run_callbacks callbacks = {stop, NULL, run};
    for (int step = 1; step < STEPS_PER_EPOCH * EPOCHS; step++) {
        cr_assert_eq(tpucl_run_train(run, &callbacks, NULL), TPUCL_INTERRUPTED);
        tpucl_run_result so_far;
        tpucl_run_stop(run); /* before it begins: not a step is done */
        cr_assert_eq(tpucl_run_train(run, NULL, &so_far), TPUCL_INTERRUPTED);
        cr_assert_eq(so_far.steps, step);
    }
    cr_assert_eq(tpucl_run_train(run, &callbacks, &parts), TPUCL_OK);
    cr_assert_eq(parts.steps, STEPS_PER_EPOCH * EPOCHS);
    cr_assert_str_eq(parts.params_sha256, expected);
    tpucl_run_destroy(run);
}

/* A device's training that is stopped ends an epoch early, so there are more of them than configured. */
Test(run, stopped_after_every_step)
{
    check_stopped_after_every_step(NULL);
}

Test(run, stopped_after_every_step_in_the_reference)
{
    check_stopped_after_every_step("reference");
}

static void expect_refused(const tpucl_run_options *options, tpucl_status status, const char *words)
{
    tpucl_run *run = NULL;
    cr_assert_eq(tpucl_run_create(options, &run), status, "%s", tpucl_last_error()->message);
    cr_assert_null(run);
    cr_assert(strstr(tpucl_last_error()->message, words), "'%s' is not in '%s'", words,
              tpucl_last_error()->message);
}

static void fail(void *user, const tpucl_progress *progress)
{
    (void)user;
    cr_assert_fail("it trained to step %lld", (long long)progress->step);
}

Test(run, what_cannot_be_is_refused_before_anything_is_trained)
{
    static const char *const holes[] = {"epochs=1", NULL, "seed=1"};
    static const char *const output[] = {"output_dir=/dev/null/out"};
    tpucl_run_options options = tpucl_run_options_default();
    options.config_text = config;
    options.overrides = holes;
    options.override_count = 3;
    expect_refused(&options, TPUCL_INVALID_ARGUMENT, "overrides[1] of 3 is NULL");
    options.override_count = -1;
    expect_refused(&options, TPUCL_INVALID_ARGUMENT, "override_count is -1");
    options.override_count = 0;
    options.split = -2;
    expect_refused(&options, TPUCL_INVALID_ARGUMENT, "'split' is -2");
    options.split = 0;
    options.device = "reference";
    options.overrides = output;
    options.override_count = 1;
    tpucl_run *run = NULL;
    cr_assert_eq(tpucl_run_create(&options, &run), TPUCL_OK);
    tpucl_run_callbacks callbacks = {fail, NULL, NULL};
    cr_assert_eq(tpucl_run_train(run, &callbacks, NULL), TPUCL_NOT_FOUND, "%s",
                 tpucl_last_error()->message);
    tpucl_run_destroy(run);
}

/* One epoch of a model with constants that need digits behind the point. */
static void train_with_constants(char out_digest[65])
{
    static const char *const overrides[] = {
        "epochs=1", "data.scale=0.37",
        "model={\"layers\": [{\"type\": \"Rescaling\", \"scale\": 0.3, \"offset\": 0.7},"
        " {\"type\": \"Dense\", \"units\": 2, \"activation\": \"selu\"}]}"};
    tpucl_run *run = NULL;
    tpucl_run_result result;
    char *json = NULL;
    tpucl_run_options options = tpucl_run_options_default();
    options.config_text = config;
    options.overrides = overrides;
    options.override_count = 3;
    cr_assert_eq(tpucl_run_create(&options, &run), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tpucl_run_train(run, NULL, &result), TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_eq(tpucl_run_result_json(run, &json), TPUCL_OK);
    cr_assert(strstr(json, "\"accuracy\": 0.5"), "%s", json);
    memcpy(out_digest, result.params_sha256, 65);
    tpucl_free(json);
    tpucl_run_destroy(run);
}

/* A program with windows sets the user's locale, and a third of the world writes 1,5. */
Test(run, a_decimal_comma_changes_nothing)
{
    char expected[65], found[65];
    train_with_constants(expected);
    cr_assert_eq(setenv("LOCPATH", folder, 1), 0);
    if (system("localedef -i de_DE -f UTF-8 ./de_DE.utf8 2>/dev/null") != 0 ||
        !setlocale(LC_ALL, "de_DE.utf8"))
        cr_skip_test("there is no locale with a decimal comma");
    cr_assert_str_eq(localeconv()->decimal_point, ",");
    train_with_constants(found);
    cr_assert_str_eq(found, expected);
}
