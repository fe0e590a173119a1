/* SPDX-License-Identifier: Apache-2.0
 * What model.compile() was told: loss, metrics, optimizer, in the words of the run configuration
 * (docs/config.md). What has no equal is left out with a finding that is no error: a run configuration can say it
 * in another way, and the model itself is whole.
 */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/str.h"
#include "keras/map_internal.h"

typedef struct compile_mapper {
    tp_arena *arena;
    tp_keras_findings *findings;
    tp_json_writer *writer;
} compile_mapper;

static tpucl_status note(compile_mapper *mapper, const char *what, const char *found,
                         const char *remedy)
{
    return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_LEFT_OUT, "", "", remedy,
                         "%s '%.80s'", what, found);
}

/* ---- loss ---- */

/* Short names of Keras' losses and metrics. */
static const char *long_name(const char *name)
{
    static const struct {
        const char *brief, *full;
    } names[] = {{"mse", "mean_squared_error"},
                 {"mae", "mean_absolute_error"},
                 {"mape", "mean_absolute_percentage_error"},
                 {"msle", "mean_squared_logarithmic_error"},
                 {"bce", "binary_crossentropy"},
                 {"kld", "kl_divergence"},
                 {"kullback_leibler_divergence", "kl_divergence"},
                 {"logcosh", "log_cosh"},
                 {"cosine", "cosine_similarity"},
                 {"acc", "accuracy"},
                 {"crossentropy", "categorical_crossentropy"},
                 {"sparse_categorical_accuracy", "accuracy"},
                 {"categorical_accuracy", "accuracy"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].brief) == 0) return names[i].full;
    return name;
}

/* "mse", {"class_name": "MeanSquaredError", "config"}, {"class_name": "function", "config": "name"}. NULL when
 * it is none of these. */
static const char *function_name(const compile_mapper *mapper, const tp_json *value)
{
    const char *name = NULL;
    if (value->kind == TP_JSON_STRING) {
        name = value->string;
    } else if (*tp_keras_class(value)) {
        const tp_json *config = tp_keras_member(value, "config");
        const tp_json *fn = config ? tp_keras_member(config, "fn") : NULL;
        if (config && config->kind == TP_JSON_STRING)
            name = config->string;
        else if (fn && fn->kind == TP_JSON_STRING)
            name = fn->string;
        else
            name = tp_keras_class(value);
    }
    /* classes and functions: MeanSquaredError and mean_squared_error */
    return name ? long_name(tp_keras_snake(mapper->arena, name)) : NULL;
}

/* A loss for each output: the only element of a list, or the only member of an object by names. */
static const tp_json *only_one(const tp_json *value)
{
    const bool is_list =
        value->kind == TP_JSON_ARRAY || (value->kind == TP_JSON_OBJECT && !*tp_keras_class(value));
    return is_list ? (value->count == 1 ? only_one(&value->items[0]) : NULL) : value;
}

/* 0.001 was a float32 in Keras: the shortest text that reads back as the same float32. */
static double shortest(double value)
{
    char text[32];
    double read = value;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (tp_str_parse_double(tp_view_of(text), &read) == TPUCL_OK && (float)read == (float)value)
            return read;
    }
    return value;
}

static const char write_it[] = "write it into the run configuration";

static bool is_number(const tp_json *value)
{
    return value && (value->kind == TP_JSON_INTEGER || value->kind == TP_JSON_NUMBER);
}

/* {"name": ..., arguments}; `weight`: of one of several outputs, or NULL. False: the loss has no name. */
static bool write_loss_object(compile_mapper *mapper, const tp_json *value, const tp_json *weight)
{
    static const char *const kept[] = {"from_logits", "label_smoothing", "delta"};
    const char *name = function_name(mapper, value);
    if (!name) return false;
    const tp_json *config = tp_keras_member(value, "config");
    tp_json_begin_object(mapper->writer);
    tp_json_put_string(mapper->writer, "name", name);
    for (size_t i = 0; config && i < sizeof kept / sizeof *kept; i++) {
        const tp_json *member = tp_keras_member(config, kept[i]);
        const bool is_set =
            member && (member->kind == TP_JSON_BOOL ? member->boolean : member->number != 0);
        /* Huber's delta is 1 unless it is said */
        if (!is_set || (strcmp(kept[i], "delta") == 0 && member->number == 1)) continue;
        tp_json_key(mapper->writer, kept[i]);
        tp_json_write_value(mapper->writer, member);
    }
    const tp_json *ignored = config ? tp_keras_member(config, "ignore_class") : NULL;
    if (is_number(ignored)) tp_json_put_double(mapper->writer, "ignore_class", ignored->number);
    if (is_number(weight)) tp_json_put_double(mapper->writer, "weight", shortest(weight->number));
    tp_json_end_object(mapper->writer);
    return true;
}

/* By name of output: "losses", and "loss", which every configuration has, as the first of them. */
static tpucl_status write_losses(compile_mapper *mapper, const tp_json *losses,
                                 const tp_json *weights)
{
    for (size_t i = 0; i < losses->count; i++)
        if (!function_name(mapper, &losses->items[i]))
            return note(mapper, "left out: the loss without a name of", losses->items[i].key,
                        write_it);
    tp_json_key(mapper->writer, "loss");
    write_loss_object(mapper, &losses->items[0], NULL);
    tp_json_key(mapper->writer, "losses");
    tp_json_begin_object(mapper->writer);
    for (size_t i = 0; i < losses->count; i++) {
        const char *output = losses->items[i].key;
        tp_json_key(mapper->writer, output);
        write_loss_object(mapper, &losses->items[i], tp_keras_member(weights, output));
    }
    tp_json_end_object(mapper->writer);
    return TPUCL_OK;
}

static bool is_by_name(const tp_json *value)
{
    return value->kind == TP_JSON_OBJECT && !*tp_keras_class(value) && value->count > 1;
}

static tpucl_status write_loss(compile_mapper *mapper, const tp_json *loss, const tp_json *weights)
{
    const bool has_weights = weights && weights->kind != TP_JSON_NULL;
    if (is_by_name(loss) && (!has_weights || weights->kind == TP_JSON_OBJECT))
        return write_losses(mapper, loss, weights);
    if (has_weights) TP_TRY(note(mapper, "left out:", "loss_weights", write_it));
    const tp_json *one = only_one(loss);
    if (!one) return note(mapper, "left out:", "a loss for each of several outputs", write_it);
    if (!function_name(mapper, one))
        return note(mapper, "left out: the loss", "without a name", write_it);
    tp_json_key(mapper->writer, "loss");
    write_loss_object(mapper, one, NULL);
    return TPUCL_OK;
}

/* ---- metrics ---- */

static tpucl_status write_metric(compile_mapper *mapper, const tp_json *value, int depth)
{
    const bool is_list =
        value->kind == TP_JSON_ARRAY || (value->kind == TP_JSON_OBJECT && !*tp_keras_class(value));
    if (is_list && depth < 4) {
        for (size_t i = 0; i < value->count; i++)
            TP_TRY(write_metric(mapper, &value->items[i], depth + 1));
        return TPUCL_OK;
    }
    if (value->kind == TP_JSON_NULL) return TPUCL_OK;
    const char *name = function_name(mapper, value);
    if (!name) return note(mapper, "left out: a metric", "without a name", "");
    tp_json_write_string(mapper->writer, name);
    return TPUCL_OK;
}

static tpucl_status write_metrics(compile_mapper *mapper, const tp_json *metrics)
{
    const bool has_names = is_by_name(metrics);
    if (has_names) tp_json_begin_object(mapper->writer);
    for (size_t i = 0; i < (has_names ? metrics->count : 1); i++) {
        const tp_json *of_output = has_names ? &metrics->items[i] : metrics;
        if (has_names) tp_json_key(mapper->writer, of_output->key);
        tp_json_begin_inline_array(mapper->writer);
        TP_TRY(write_metric(mapper, of_output, 0));
        tp_json_end_array(mapper->writer);
    }
    if (has_names) tp_json_end_object(mapper->writer);
    return TPUCL_OK;
}

/* ---- optimizer ---- */

/* Members of a schedule or an optimizer that are at the value where they do nothing. */
static bool is_idle(const tp_json *value)
{
    static const char *const ignored[] = {"name",
                                          "ema_momentum",
                                          "jit_compile",
                                          "is_legacy_optimizer",
                                          "decay",
                                          "loss_scale_factor",
                                          "ema_overwrite_frequency",
                                          "staircase",
                                          "learning_rate"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(value->key, ignored[i]) == 0) return true;
    return value->kind == TP_JSON_NULL || (value->kind == TP_JSON_BOOL && !value->boolean);
}

/* A number, or a schedule, of which CosineDecay is known here. */
static tpucl_status write_rate(compile_mapper *mapper, const tp_json *value)
{
    const char *schedule = tp_keras_class(value);
    if (*schedule) {
        const tp_json *config = tp_keras_member(value, "config");
        const tp_json *initial = config ? tp_keras_member(config, "initial_learning_rate") : NULL;
        if (initial && (initial->kind == TP_JSON_NUMBER || initial->kind == TP_JSON_INTEGER))
            tp_json_put_double(mapper->writer, "learning_rate", shortest(initial->number));
        if (strcmp(schedule, "CosineDecay") == 0) {
            tp_json_put_string(mapper->writer, "schedule", "cosine");
            return note(mapper, "the schedule falls to 0 over the run's steps:", schedule,
                        "set 'epochs' or 'steps' to what it had");
        }
        return note(mapper, "left out: the schedule", schedule,
                    "write 'optimizer.schedule' into the run configuration");
    }
    if (value->kind == TP_JSON_NUMBER || value->kind == TP_JSON_INTEGER)
        tp_json_put_double(mapper->writer, "learning_rate", shortest(value->number));
    return TPUCL_OK;
}

static const char *optimizer_name(const char *name)
{
    static const char *const names[] = {
        "SGD",      "Adam",      "AdamW", "Adamax", "Nadam", "RMSprop",           "Adagrad",
        "Adadelta", "Adafactor", "Lamb",  "Lion",   "Ftrl",  "LossScaleOptimizer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *a = names[i], *b = name;
        while (*a && (*a | 32) == (*b | 32))
            a++, b++;
        if (!*a && !*b) return names[i];
    }
    return name;
}

static tpucl_status write_optimizer(compile_mapper *mapper, const tp_json *optimizer)
{
    const tp_json *config = tp_keras_member(optimizer, "config");
    const char *name =
        optimizer->kind == TP_JSON_STRING ? optimizer->string : tp_keras_class(optimizer);
    if (!*name) return note(mapper, "left out: the optimizer", "without a name", "");
    name = optimizer_name(name);
    if (strcmp(name, "LossScaleOptimizer") == 0) {
        /* bfloat16 needs no loss scale */
        const tp_json *inner = config ? tp_keras_member(config, "inner_optimizer") : NULL;
        return inner && !tp_keras_member(inner, "inner_optimizer") &&
                       strcmp(tp_keras_class(inner), "LossScaleOptimizer") != 0
                   ? write_optimizer(mapper, inner)
                   : note(mapper, "left out: the optimizer", name, "");
    }
    tp_json_key(mapper->writer, "optimizer");
    tp_json_begin_object(mapper->writer);
    tp_json_put_string(mapper->writer, "name", name);
    const tp_json *rate = config ? tp_keras_member(config, "learning_rate") : NULL;
    if (config && !rate) rate = tp_keras_member(config, "lr");
    if (rate) TP_TRY(write_rate(mapper, rate));
    for (size_t i = 0; config && config->kind == TP_JSON_OBJECT && i < config->count; i++) {
        const tp_json *value = &config->items[i];
        if (is_idle(value) || strcmp(value->key, "lr") == 0) continue;
        tp_json_key(mapper->writer, value->key);
        if (value->kind == TP_JSON_NUMBER)
            tp_json_write_double(mapper->writer, shortest(value->number));
        else
            tp_json_write_value(mapper->writer, value);
    }
    tp_json_end_object(mapper->writer);
    return TPUCL_OK;
}

/* ---- both ---- */

static tpucl_status write_members(compile_mapper *mapper, const tp_json *compile)
{
    const tp_json *loss = tp_keras_member(compile, "loss");
    const tp_json *metrics = tp_keras_member(compile, "metrics");
    const tp_json *weighted = tp_keras_member(compile, "weighted_metrics");
    const tp_json *optimizer = tp_keras_member(compile, "optimizer");
    const tp_json *weights = tp_keras_member(compile, "loss_weights");
    if (!optimizer) optimizer = tp_keras_member(compile, "optimizer_config"); /* before Keras 3 */
    if (loss && loss->kind != TP_JSON_NULL) TP_TRY(write_loss(mapper, loss, weights));
    if (optimizer && optimizer->kind != TP_JSON_NULL) TP_TRY(write_optimizer(mapper, optimizer));
    if ((!metrics || metrics->kind == TP_JSON_NULL) && weighted) metrics = weighted;
    if (!metrics || metrics->kind == TP_JSON_NULL) return TPUCL_OK;
    tp_json_key(mapper->writer, "metrics");
    return write_metrics(mapper, metrics);
}

tpucl_status tp_keras_map_compile(const tp_json *compile, tp_arena *arena,
                                  tp_keras_findings *findings, const char **out_json)
{
    tp_json_writer writer = {0};
    compile_mapper mapper = {arena, findings, &writer};
    char *text = NULL;
    tp_json_begin_object(&writer);
    tpucl_status status = compile ? write_members(&mapper, compile) : TPUCL_OK;
    if (status == TPUCL_OK) {
        tp_json_end_object(&writer);
        status = tp_json_writer_finish(&writer, &text);
    }
    tp_json_writer_deinit(&writer);
    TP_TRY(status);
    *out_json = tp_arena_strdup(arena, text);
    tp_free(text);
    return *out_json ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}
