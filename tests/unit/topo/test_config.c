/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "harness/alloc_loop.h"
#include "topo/config_table.h"

/* The smallest configuration, with more members behind it. */
#define MINIMAL "\"model\":{\"layers\":[]},\"loss\":\"mean_squared_error\",\"optimizer\":\"SGD\""

static tpucl_status parse(const char *text, const char *override, tp_config **out_config)
{
    return tp_config_parse(text, strlen(text), "t", &override, override != NULL, out_config);
}

static tp_config *expect(const char *text, const char *override)
{
    tp_config *config;
    cr_assert_eq(parse(text, override, &config), TPUCL_OK, "%s", tpucl_last_error()->message);
    return config;
}

static tp_topology *load(const char *name)
{
    tp_topology *topology;
    cr_assert_eq(tp_topology_load(name, &topology), TPUCL_OK);
    return topology;
}

Test(config, defaults)
{
    tp_config *c = expect("{" MINIMAL "}", NULL);
    cr_assert_str_eq(c->name, "run");
    cr_assert_str_eq(c->topology, "v2-8");
    cr_assert(c->loss.name == TP_LOSS_MEAN_SQUARED_ERROR && !c->loss.from_logits);
    cr_assert(c->optimizer.name == TP_OPTIMIZER_SGD && c->optimizer.learning_rate == 0.01);
    cr_assert(isnan(c->optimizer.beta_1) && isnan(c->optimizer.epsilon), "those are Adam's");
    cr_assert(c->optimizer.schedule.name == TP_SCHEDULE_CONSTANT);
    cr_assert(c->optimizer.momentum == 0 && isnan(c->optimizer.weight_decay));
    cr_assert(c->precision.policy == -1 && c->precision.weights == -1 &&
              c->matmul_precision == -1 && c->math == -1);
    cr_assert(c->global_batch == 0 && c->per_core_batch == 0);
    cr_assert(c->data.dataset == TP_DATASET_FASHION_MNIST && c->data.shuffle && c->data.repeat);
    cr_assert(c->epochs == 1 && c->steps == 0 && c->seed == 0 && c->wave_cores == 0);
    cr_assert(c->metrics.count == 0 && c->input_shape.count == 0);
    cr_assert(tp_config_given(c, "model") && !tp_config_given(c, "epochs"));
    cr_assert_eq(tp_json_member(c->model, "layers")->count, 0);
    tp_config_destroy(c);
    tp_config_destroy(NULL);
}

/* With a name the whole object, without one its keys. */
Test(config, an_object_with_a_name_replaces)
{
    static const char text[] =
        "{\"model\": {\"layers\": []}, \"loss\": \"mean_squared_error\", \"optimizer\": "
        "{\"name\": \"SGD\", \"momentum\": 0.5, \"learning_rate\": 0.25}}";
    tp_config *config = expect(text, "optimizer={\"name\": \"Adam\", \"beta_1\": 0.5}");
    cr_assert(!tp_config_given(config, "optimizer.momentum"));
    cr_assert(isnan(config->optimizer.momentum) && config->optimizer.beta_1 == 0.5);
    tp_config_destroy(config);
    config = expect(text, "optimizer={\"learning_rate\": 0.125}");
    cr_assert(config->optimizer.momentum == 0.5 && config->optimizer.learning_rate == 0.125);
    tp_config_destroy(config);
}

Test(config, file_then_overrides)
{
    const char *const overrides[] = {"epochs=7", "optimizer.learning_rate=1e-2", "topology=v3-8",
                                     "model={\"layers\":[1,2]}", "model={\"layers\":[1,2,3]}"};
    tp_config *c;
    cr_assert_eq(
        tp_config_read_file(TPUCL_SOURCE_DIR "/configs/fashion-mlp.json", overrides, 5, &c),
        TPUCL_OK, "%s", tpucl_last_error()->message);
    cr_assert_str_eq(c->name, "fashion-mlp");
    cr_assert(c->epochs == 7 && c->optimizer.learning_rate == 0.01);
    cr_assert_str_eq(c->topology, "v3-8");
    cr_assert_eq(tp_json_member(c->model, "layers")->count, 3);
    cr_assert(c->metrics.count == 1 && !strcmp(c->metrics.items[0].label, "accuracy"));
    cr_assert(tp_config_given(c, "epochs") && tp_config_given(c, "topology"));
    tp_config_destroy(c);
}

Test(config, committed_configurations_are_good)
{
    const char *const files[] = {"/configs/fashion-mlp.json", "/configs/fashion-conv.json"};
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", TPUCL_SOURCE_DIR, files[i]);
        tp_config *c;
        cr_assert_eq(tp_config_read_file(path, NULL, 0, &c), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        tp_topology *t = load(c->topology);
        cr_assert_eq(tp_config_resolve(c, t), TPUCL_OK, "%s", tpucl_last_error()->message);
        cr_assert_eq(c->global_batch, 8 * c->per_core_batch);
        tp_topology_destroy(t);
        tp_config_destroy(c);
    }
}

static const struct {
    const char *text, *override, *message;
} bad_configurations[] = {
    {"[]", NULL, "expected an object, found an array at t:1:1"},
    {"{}", NULL, "key 'optimizer.name' is missing in 't'"},
    {"{" MINIMAL ",\"epochs\":0}", NULL,
     "expected an integer from 1 to 1000000, found 0 at t:1:79 (key path 'epochs')"},
    {"{" MINIMAL ",\"epochs\":1,\"epochs\":2}", NULL, "found 'epochs' again"},
    {"{" MINIMAL ",\"epoch\":1}", NULL,
     "unknown key 'epoch' at t:1:78 (key path 'epoch'), did "
     "you mean 'epochs'?"},
    {"{" MINIMAL ",\"learning_rate\":1}", NULL, "did you mean 'optimizer.learning_rate'?"},
    {"{" MINIMAL ",\"data\":{\"train\":{\"input\":\"\"}}}", NULL,
     "unknown key 'data.train.input' at t:1:95 (key path 'data.train.input'), did you mean "
     "'data.train.inputs'?"},
    {"{" MINIMAL ",\"data\":\"idx\"}", NULL, "expected an object, found the string 'idx'"},
    {"{" MINIMAL ",\"data.shuffle\":true}", NULL, "unknown key 'data.shuffle'"},
    {"{" MINIMAL ",\"name\":3}", NULL, "expected a string, found 3"},
    {"{" MINIMAL ",\"name\":null}", NULL, "expected a string, found null"},
    {"{" MINIMAL ",\"seed\":1.5}", NULL, "found 1.5"},
    {"{" MINIMAL ",\"seed\":-1}", NULL, "found -1"},
    {"{" MINIMAL ",\"precision\":\"float16\"}", NULL, "found the string 'float16'"},
    {"{" MINIMAL ",\"precision\":{\"policy\":\"bfloat16\",\"weight\":\"float32\"}}", NULL,
     "did you mean 'precision.weights'?"},
    {"{" MINIMAL ",\"precision\":{\"gradients\":\"mixed_bfloat16\"}}", NULL,
     "found the string 'mixed_bfloat16'"},
    {"{" MINIMAL ",\"metrics\":[\"accuracy\",\"accuracy\"]}", NULL, "is listed twice"},
    {"{" MINIMAL ",\"metrics\":[\"acuracy\"]}", NULL, "did you mean 'accuracy'?"},
    {"{" MINIMAL ",\"metrics\":[{\"name\":\"expression\"}]}", NULL, "needs an 'expression'"},
    {"{" MINIMAL ",\"metrics\":[{\"name\":\"auc\",\"weight\":\"1\"}]}", NULL,
     "'expression' and 'weight' belong to"},
    {"{" MINIMAL ",\"metrics\":[{\"name\":\"auc\",\"label\":\"loss\"}]}", NULL, "expected a label"},
    {"{" MINIMAL ",\"metrics\":[{\"name\":\"auc\",\"lable\":\"x\"}]}", NULL, "'label'"},
    {"{" MINIMAL ",\"metrics\":{\"a\":\"auc\",\"b\":[\"auc\",\"auc\"]}}", NULL, "is listed twice"},
    {"{" MINIMAL ",\"metrics\":3}", NULL, "metrics"},
    {"{" MINIMAL "}", "loss=expression", "needs 'loss.expression'"},
    {"{" MINIMAL ",\"losses\":{\"a\":\"expression\"}}", NULL, "needs an 'expression'"},
    {"{" MINIMAL "}", "loss.expression=y_pred", "'loss.expression' belongs to expression"},
    {"{" MINIMAL ",\"input_shape\":[28,0]}", NULL, "found 0"},
    {"{" MINIMAL ",\"input_shape\":[1,1,1,1,1,1,1,1,1]}", NULL, "at most 8 dimensions, found 9"},
    {"{" MINIMAL ",\"cross_shard\":{\"groups\":[[0,1],[2]]}}", NULL, "groups of one size"},
    {"{" MINIMAL ",\"cross_shard\":{\"groups\":[[]]}}", NULL, "groups of one size"},
    {"{" MINIMAL ",\"cross_shard\":{\"groups\":[[0],[0]]}}", NULL, "core 0 is in two places"},
    {"{" MINIMAL ",\"cross_shard\":{\"groups\":[0]}}", NULL, "expected an array, found 0"},
    {"{" MINIMAL "}", "epochs", "expected an override of the form key=value, found 'epochs'"},
    {"{" MINIMAL "}", "=3", "of the form key=value"},
    {"{" MINIMAL "}", "epochs=many", "found the string 'many' at --set epochs:1:1"},
    {"{" MINIMAL "}", "optimizer.beta_1=0.5",
     "'optimizer.beta_1' belongs to Adam, AdamW, Adamax, Nadam, Lion, Lamb, but "
     "'optimizer.name' is 'SGD'"},
    {"{" MINIMAL "}", "optimizer.amsgrad=true", "belongs to Adam, AdamW, but"},
    {"{" MINIMAL "}", "optimizer.schedule.alpha=0.5",
     "belongs to cosine, CosineDecay, CosineDecayRestarts, but 'optimizer.schedule.name' is "
     "'constant'"},
    {"{" MINIMAL "}", "optimizer.schedule=ExponentialDecay", "decay_rate' is missing"},
    {"{" MINIMAL "}", "optimizer.schedule=CosineDecayRestarts", "first_decay_steps' is"},
    {"{" MINIMAL "}", "optimizer.schedule={\"name\":\"PiecewiseConstantDecay\",\"values\":[1,2]}",
     "values' has 2 numbers and 'optimizer.schedule.boundaries' 0"},
    {"{" MINIMAL "}", "optimizer.schedule.warmup_steps=3", "go together, found one"},
    {"{" MINIMAL "}", "optimizer.schedule.values=[1,\"a\"]", "found the string 'a'"},
    {"{" MINIMAL "}", "optimizer.exclude_from_weight_decay=[3]", "expected a string, found 3"},
    {"{" MINIMAL "}", "optimizer={\"name\":\"SGD\",\"clipnorm\":1,\"clipvalue\":1}",
     "at most one may be given"},
    {"{" MINIMAL "}", "optimizer.ema_overwrite_frequency=4", "needs 'optimizer.use_ema'"},
    {"{" MINIMAL "}", "loss.from_logits=true",
     "'loss.from_logits' belongs to sparse_categorical_crossentropy, categorical"},
    {"{" MINIMAL "}", "loss={\"name\":\"huber\",\"label_smoothing\":0.1}",
     "'loss.label_smoothing' belongs to categorical_crossentropy, binary"},
    {"{" MINIMAL "}", "loss.class_weight=[1,2]", "'loss.class_weight' belongs to sparse"},
    {"{" MINIMAL "}", "loss={\"name\":\"sparse_categorical_crossentropy\",\"ignore_class\":1.5}",
     "expected a whole number"},
    {"{" MINIMAL "}", "data.dataset=npy", "'data.train.labels' is missing"},
    {"{" MINIMAL "}", "data.test.inputs=x", "belongs to the data sets that are read from files"},
    {"{" MINIMAL "}", "model=3", "expected an object, found 3"},
    {"{\"model\":3,\"loss\":\"mean_squared_error\",\"optimizer\":\"Adam\"}",
     "optimizer.momentum=0.5", "belongs to SGD, RMSprop, LARS, but"},
};

Test(config, every_problem_is_named)
{
    for (size_t i = 0; i < sizeof bad_configurations / sizeof bad_configurations[0]; i++) {
        tp_config *c;
        cr_assert_eq(parse(bad_configurations[i].text, bad_configurations[i].override, &c),
                     TPUCL_INVALID_CONFIG, "accepted: %s", bad_configurations[i].text);
        cr_assert_null(c);
        cr_assert(strstr(tpucl_last_error()->message, bad_configurations[i].message),
                  "%s\n gives: %s\n not: %s", bad_configurations[i].text,
                  tpucl_last_error()->message, bad_configurations[i].message);
    }
}

Test(config, all_problems_at_once)
{
    tp_config *c;
    cr_assert_eq(parse("{\"epochs\":0,\"seed\":-1,\"oops\":1}", "steps=x", &c),
                 TPUCL_INVALID_CONFIG);
    cr_assert(strstr(tpucl_last_error()->message, "run configuration 't' has 7 problems:"), "%s",
              tpucl_last_error()->message);
}

/* given per core and in all; cores; default -> per core, or the message */
Test(config, batches)
{
    const struct {
        int64_t per_core, global;
        int32_t cores;
        int64_t expected;
        const char *message;
    } cases[] = {
        {0, 0, 8, 128, NULL},
        {16, 0, 8, 16, NULL},
        {0, 1024, 8, 128, NULL},
        {128, 1024, 8, 128, NULL},
        {0, 1000, 12, 0,
         "expected 'global_batch' to be a multiple of the 12 cores, found 1000; the nearest are "
         "996 "
         "and 1008"},
        {0, 6, 8, 0,
         "expected 'global_batch' to be a multiple of the 8 cores, found 6; the smallest is 8"},
        {100, 1024, 8, 0,
         "expected 'global_batch' = 'per_core_batch' * cores, found 1024 and 100 * 8 = 800; set "
         "'global_batch' to 800 or 'per_core_batch' to 128, or leave one out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tp_config config = {.per_core_batch = cases[i].per_core,
                                  .global_batch = cases[i].global};
        int64_t per_core, global;
        tpucl_status status =
            tp_config_resolve_batch(&config, cases[i].cores, 128, &per_core, &global);
        if (cases[i].message) {
            cr_assert_eq(status, TPUCL_INVALID_CONFIG);
            cr_assert_str_eq(tpucl_last_error()->message, cases[i].message);
        } else {
            cr_assert_eq(status, TPUCL_OK);
            cr_assert(per_core == cases[i].expected && global == per_core * cases[i].cores);
        }
    }
}

Test(config, resolving_takes_what_is_not_given_from_the_topology)
{
    tp_topology *k80 = load("k80"), *v2 = load("v2-8");
    tp_config *c = expect("{" MINIMAL "}", "matmul_precision=highest");
    cr_assert_eq(tp_config_resolve(c, k80), TPUCL_OK);
    cr_assert(c->precision.policy == TP_PRECISION_FLOAT32 && c->math == TP_MATH_FAST);
    cr_assert_eq(c->matmul_precision, TP_MATMUL_HIGHEST);
    cr_assert(c->per_core_batch == 16 && c->global_batch == 16);
    tp_config_destroy(c);
    const struct {
        const char *override, *message;
    } bad[] = {
        {"wave_cores=3", "expected 'wave_cores' to be 0, a power of two below 8, or 8, found 3"},
        {"wave_cores=16", "found 16"},
        {"cross_shard.groups=[[0,1],[2,3]]", "found 4 of 8"},
        {"cross_shard.groups=[[0,8]]", "names core 8, but the topology has cores 0 to 7"},
        {"global_batch=9", "the nearest are 8 and 16"},
        {"precision={\"policy\":\"float32\",\"weights\":\"bfloat16\"}",
         "'precision.weights' is bfloat16 with the policy float32"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        c = expect("{" MINIMAL "}", bad[i].override);
        cr_assert_eq(tp_config_resolve(c, v2), TPUCL_INVALID_CONFIG);
        cr_assert(strstr(tpucl_last_error()->message, bad[i].message), "%s",
                  tpucl_last_error()->message);
        tp_config_destroy(c);
    }
    const struct {
        const char *override;
        int32_t policy, weights;
    } policies[] = {{"precision=bfloat16", TP_PRECISION_BFLOAT16, TP_CONFIG_BFLOAT16},
                    {"precision=mixed_bfloat16", TP_PRECISION_MIXED_BFLOAT16, TP_CONFIG_FLOAT32},
                    {"precision=null", TP_PRECISION_MIXED_BFLOAT16, TP_CONFIG_FLOAT32},
                    {"precision.weights=bfloat16", TP_PRECISION_MIXED_BFLOAT16, TP_CONFIG_BFLOAT16},
                    {"precision={\"policy\":\"bfloat16\",\"weights\":\"float32\"}",
                     TP_PRECISION_BFLOAT16, TP_CONFIG_FLOAT32}};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        c = expect("{" MINIMAL "}", policies[i].override);
        cr_assert_eq(tp_config_resolve(c, v2), TPUCL_OK);
        cr_assert(c->precision.policy == policies[i].policy &&
                      c->precision.weights == policies[i].weights,
                  "%s", policies[i].override);
        tp_config_destroy(c);
    }
    c = expect("{" MINIMAL "}", "cross_shard.groups=[[0,2,4,6],[1,3,5,7]]");
    cr_assert_eq(tp_config_resolve(c, v2), TPUCL_OK);
    cr_assert(c->cross_shard.group_size == 4 && c->cross_shard.groups.items[4] == 1);
    tp_config_destroy(c);
    tp_topology_destroy(k80);
    tp_topology_destroy(v2);
}

Test(config, written_and_read_back)
{
    tp_topology *v2 = load("v2-8");
    const char *const texts[] = {
        "{" MINIMAL ",\"cross_shard\":{\"groups\":[[0,1,2,3],[4,5,6,7]]},\"input_shape\":[28,28]}",
        "{" MINIMAL
        ",\"optimizer\":{\"name\":\"Adam\",\"epsilon\":1e-8},\"metrics\":[\"accuracy\"],"
        "\"data\":{\"dataset\":\"npy\",\"train\":{\"inputs\":\"x\",\"labels\":\"y\"}}}"};
    for (int i = 0; i < 2; i++) {
        char *first, *second, hash[2][65], text[512];
        snprintf(text, sizeof text, "%s", texts[i]);
        if (i == 1) { /* the literal above has the optimizer twice: cut the first */
            char *begin = strstr(text, ",\"optimizer\":\"SGD\"");
            memmove(begin, begin + 18, strlen(begin + 18) + 1);
        }
        tp_config *c = expect(text, NULL), *again;
        cr_assert_eq(tp_config_resolve(c, v2), TPUCL_OK);
        cr_assert_eq(tp_config_to_json(c, &first), TPUCL_OK);
        again = expect(first, NULL);
        cr_assert_eq(tp_config_resolve(again, v2), TPUCL_OK);
        cr_assert_eq(tp_config_to_json(again, &second), TPUCL_OK);
        cr_assert_str_eq(first, second);
        cr_assert_eq(tp_config_sha256(c, hash[0]), TPUCL_OK);
        cr_assert_eq(tp_config_sha256(again, hash[1]), TPUCL_OK);
        cr_assert_str_eq(hash[0], hash[1]);
        tp_free(first);
        tp_free(second);
        tp_config_destroy(c);
        tp_config_destroy(again);
    }
    tp_topology_destroy(v2);
}

Test(config, defaults_follow_what_is_chosen)
{
    tp_config *c = expect("{" MINIMAL "}", "optimizer=AdamW");
    cr_assert(c->optimizer.learning_rate == 0.001 && c->optimizer.weight_decay == 0.004);
    tp_config_destroy(c);
    c = expect("{" MINIMAL "}", "optimizer={\"name\":\"Adafactor\",\"epsilon_2\":0.5}");
    cr_assert(c->optimizer.relative_step && c->optimizer.beta_2_decay == -0.8);
    cr_assert(c->optimizer.epsilon_1 == 1e-30 && c->optimizer.epsilon_2 == 0.5);
    cr_assert(isnan(c->optimizer.weight_decay) && isnan(c->optimizer.rho));
    tp_config_destroy(c);
    c = expect("{" MINIMAL "}", "optimizer={\"name\":\"Adafactor\",\"relative_step\":false}");
    cr_assert(!c->optimizer.relative_step);
    tp_config_destroy(c);
    c = expect("{" MINIMAL "}",
               "optimizer.schedule={\"name\":\"PiecewiseConstantDecay\",\"boundaries\":[5,9],"
               "\"values\":[1,0.5,0.25]}");
    cr_assert(c->optimizer.schedule.boundaries.count == 2 &&
              c->optimizer.schedule.values.items[2] == 0.25);
    tp_config_destroy(c);
    c = expect("{" MINIMAL "}", "loss=tversky");
    cr_assert(c->loss.alpha == 0.5 && c->loss.beta == 0.5 && isnan(c->loss.delta));
    tp_config_destroy(c);
    c = expect("{" MINIMAL "}", "optimizer.exclude_from_weight_decay=[\"bias\",\"gamma\"]");
    cr_assert_str_eq(c->optimizer.exclude_from_weight_decay.items[1], "gamma");
    tp_config_destroy(c);
}

Test(config, every_optimizer_written_and_read_back)
{
    for (int i = 0; tp_config_choices[1].names[i]; i++) {
        char override[64], *first, *second;
        snprintf(override, sizeof override, "optimizer=%s", tp_config_choices[1].names[i]);
        tp_config *c = expect("{" MINIMAL "}", override), *again;
        cr_assert_eq(tp_config_to_json(c, &first), TPUCL_OK);
        again = expect(first, NULL);
        cr_assert_eq(tp_config_to_json(again, &second), TPUCL_OK);
        cr_assert_str_eq(first, second);
        tp_free(first);
        tp_free(second);
        tp_config_destroy(c);
        tp_config_destroy(again);
    }
}

/* A list of choices names keys that exist, and takes each default as the reader does. */
Test(config, choices_are_consistent)
{
    for (const tp_config_choice *choice = tp_config_choices; choice->prefix; choice++)
        for (int i = 0; choice->names[i]; i++)
            for (const char *at = choice->keys[i]; *at; at += strspn(at, " ")) {
                char path[96];
                snprintf(path, sizeof path, "%s%.*s", choice->prefix, (int)strcspn(at, "="), at);
                cr_assert_geq(tp_config_find_key(path), 0, "%s: no key '%s'", choice->names[i],
                              path);
                at += strcspn(at, " ");
            }
}

/* Accuracy is the default where the loss has one; none is none, also after writing and reading. */
/* Written out and read again. */
Test(config, metrics_and_expressions_of_outputs)
{
    static const char text[] =
        "{" MINIMAL ",\"losses\":{\"a\":{\"name\":\"expression\",\"expression\":\"abs(y_pred)\","
        "\"mask\":\"y_true > 0\"}},\"metrics\":{\"a\":\"auc\",\"b\":[{\"name\":\"expression\","
        "\"label\":\"lit\",\"expression\":\"y_pred > 0\",\"weight\":\"y_true\"},\"precision\"]}}";
    const char *written = text;
    char *again = NULL;
    for (int turn = 0; turn < 2; turn++) {
        tp_config *c = expect(written, "loss.mask=y_true != 3");
        cr_assert(c->metrics.count == 3 && c->metrics.is_by_output);
        cr_assert_str_eq(c->metrics.items[0].output, "a");
        cr_assert_str_eq(c->metrics.items[1].label, "lit");
        cr_assert_str_eq(c->metrics.items[1].weight, "y_true");
        cr_assert_str_eq(c->metrics.items[1].path, "metrics.b[0]");
        cr_assert_eq(c->metrics.items[2].name, TP_CONFIG_METRIC_PRECISION);
        cr_assert_str_eq(c->losses.items[0].expression, "abs(y_pred)");
        cr_assert_str_eq(c->losses.items[0].mask, "y_true > 0");
        cr_assert_str_eq(c->loss.mask, "y_true != 3");
        tp_free(again);
        cr_assert_eq(tp_config_to_json(c, &again), TPUCL_OK);
        written = again;
        tp_config_destroy(c);
    }
    tp_free(again);
}

Test(config, metrics_when_not_given)
{
    tp_topology *v2 = load("v2-8");
    const struct {
        const char *text, *loss;
        size_t count;
    } cases[] = {{"{" MINIMAL "}", "loss=sparse_categorical_crossentropy", 1},
                 {"{" MINIMAL "}", "loss=mean_squared_error", 0},
                 {"{" MINIMAL ",\"metrics\":[]}", "loss=sparse_categorical_crossentropy", 0}};
    for (int i = 0; i < 3; i++) {
        tp_config *c = expect(cases[i].text, cases[i].loss), *again;
        char *text;
        cr_assert_eq(tp_config_resolve(c, v2), TPUCL_OK);
        cr_assert_eq(c->metrics.count, cases[i].count, "case %d", i);
        cr_assert_eq(tp_config_to_json(c, &text), TPUCL_OK);
        again = expect(text, NULL);
        cr_assert_eq(tp_config_resolve(again, v2), TPUCL_OK);
        cr_assert_eq(again->metrics.count, cases[i].count, "case %d", i);
        tp_free(text);
        tp_config_destroy(c);
        tp_config_destroy(again);
    }
    tp_topology_destroy(v2);
}

Test(config, hash_sees_what_changes_results_only)
{
    const char *const same[] = {"output_dir=/x",   "log_every=3",      "wave_cores=2",
                                "data.prefetch=5", "steps_per_loop=1", "name=other"};
    const char *const other[] = {"seed=1",
                                 "epochs=2",
                                 "optimizer.learning_rate=0.5",
                                 "math=fast",
                                 "model={\"layers\":[1]}",
                                 "per_core_batch=4"};
    char reference[65], hash[65];
    tp_config *c = expect("{" MINIMAL "}", NULL);
    cr_assert_eq(tp_config_sha256(c, reference), TPUCL_OK);
    tp_config_destroy(c);
    for (int i = 0; i < 12; i++) {
        c = expect("{" MINIMAL "}", i < 6 ? same[i] : other[i - 6]);
        cr_assert_eq(tp_config_sha256(c, hash), TPUCL_OK);
        cr_assert_eq(strcmp(hash, reference) == 0, i < 6, "%s", i < 6 ? same[i] : other[i - 6]);
        tp_config_destroy(c);
    }
}

Test(config, table_is_consistent)
{
    for (size_t i = 0; i < tp_config_key_count(); i++) {
        const tp_config_key *key = &tp_config_keys[i];
        cr_assert_eq(tp_config_find_key(key->path), (int)i, "'%s' stands twice", key->path);
        cr_assert_lt(strlen(key->path), 60);
        cr_assert(key->meaning && key->meaning[0]);
        cr_assert_eq(key->choices != NULL, key->type == TP_CONFIG_CHOICE);
    }
}

static tpucl_status whole_life(void *user)
{
    const char *const overrides[] = {"topology=cpu", "cross_shard.groups=[[0]]", "input_shape=[3]"};
    tp_config *c;
    tp_topology *t = NULL;
    char *text = NULL, hash[65];
    TP_TRY(tp_config_parse(user, strlen(user), "t", overrides, 3, &c));
    tpucl_status status;
    TP_TRY_GOTO(status, tp_topology_load(c->topology, &t), done);
    TP_TRY_GOTO(status, tp_config_resolve(c, t), done);
    TP_TRY_GOTO(status, tp_config_to_json(c, &text), done);
    TP_TRY_GOTO(status, tp_config_sha256(c, hash), done);
done:
    tp_free(text);
    tp_topology_destroy(t);
    tp_config_destroy(c);
    return status;
}

Test(config, every_allocation_may_fail)
{
    alloc_loop_run(whole_life, "{" MINIMAL ",\"metrics\":[\"accuracy\"],\"name\":\"n\"}");
}

static tpucl_status make_texts(void *user)
{
    tpucl_status (*const makers[])(char **) = {tp_config_schema, tp_config_markdown,
                                               tp_config_help};
    (void)user;
    for (int i = 0; i < 3; i++) {
        char *text;
        TP_TRY(makers[i](&text));
        for (size_t k = 0; k < tp_config_key_count(); k++) {
            const char *dot = strrchr(tp_config_keys[k].path, '.');
            cr_assert(strstr(text, i == 0 && dot ? dot + 1 : tp_config_keys[k].path));
        }
        tp_free(text);
    }
    return TPUCL_OK;
}

Test(config, texts_name_every_key)
{
    alloc_loop_run(make_texts, NULL);
}
