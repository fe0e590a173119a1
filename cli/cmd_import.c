/* SPDX-License-Identifier: Apache-2.0
 * tpucl import: a model that Keras wrote becomes a run configuration and its parameters. */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include "keras_run.h"
#include "ui.h"

typedef struct import_values {
    tp_cmd_common common;
    const char *weights, *output;
} import_values;

static const tp_opt_row options[] = {
    {.name = "output-dir",
     .letter = 'o',
     .kind = TP_OPT_TEXT,
     .value = "FOLDER",
     .offset = offsetof(import_values, output),
     .complete = TP_COMPLETE_FOLDER,
     .help = "write run.json and params.safetensors there; without it nothing is written"},
    {.name = "weights",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .offset = offsetof(import_values, weights),
     .complete = TP_COMPLETE_FILE,
     .help = "take the weights from there: .weights.h5, .h5, .keras, or .weights.json with shards"},
    {.name = NULL},
};

/* "6 x 4", or "scalar". */
static const char *shape_text(const tpucl_shape *shape, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "scalar");
    for (int i = 0; i < (int)shape->rank && used + 1 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "x" : "",
                                 (long long)shape->dims[i]);
    return text;
}

static void print_layers(const tpucl_import *import)
{
    tp_ui_table table;
    tpucl_import_layer layer;
    tp_ui_table_begin(&table, "layer|type|output|>params|weights from");
    for (int32_t i = 0; (layer = tpucl_import_layer_at(import, i)).name; i++) {
        char shape[128];
        tp_ui_cell(&table, "%s", layer.name);
        tp_ui_cell(&table, "%s", layer.type);
        tp_ui_cell(&table, "%s", shape_text(&layer.output, shape, sizeof shape));
        tp_ui_cell(&table, "%lld", (long long)layer.params);
        tp_ui_cell(&table, "%s", *layer.source ? layer.source : "-");
    }
    tp_ui_table_end(&table, stdout);
}

static void print_import(const tpucl_import *import, const import_values *values)
{
    const tpucl_import_summary *summary = tpucl_import_get_summary(import);
    if (summary->errors) return;
    print_layers(import);
    tp_keras_run_print_findings(import, "note", stdout);
    printf("%s: %d layers, %lld parameters in %d weights, %s%s%s\n", summary->name,
           (int)summary->layers, (long long)summary->params, (int)summary->weights,
           summary->precision, *summary->keras_version ? ", Keras " : "", summary->keras_version);
    if (values->output) printf("written to %s\n", values->output);
}

static tp_exit finish_import(const tp_cmd *cmd, const import_values *values,
                             const tpucl_import *import, const char *model)
{
    const int errors = (int)tpucl_import_get_summary(import)->errors;
    char *json = NULL;
    tpucl_status status = TPUCL_OK;
    if (values->output && !errors) status = tpucl_import_save(import, values->output);
    if (status == TPUCL_OK) status = tpucl_import_json(import, &json);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->common)) print_import(import, values);
    tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    if (!errors || code != TP_EXIT_DONE) return code;
    tp_keras_run_print_findings(import, "error", stderr);
    fprintf(stderr, "tpucl import: '%s' cannot be taken over: %d error%s\n", model, errors,
            errors == 1 ? "" : "s");
    return TP_EXIT_USAGE;
}

static tp_exit run_import(const tp_cmd *cmd, int argc, char **argv)
{
    import_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    tpucl_import_options settings = tpucl_import_options_default();
    settings.model = operands.items[0];
    settings.weights = values.weights;
    tpucl_import *import = NULL;
    const tpucl_status status = tpucl_import_create(&settings, &import);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    code = finish_import(cmd, &values, import, operands.items[0]);
    tpucl_import_destroy(import);
    return code;
}

const tp_cmd tp_cmd_import = {
    .name = "import",
    .summary = "turn a Keras file into a run configuration and parameters",
    .operands = "MODEL",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Reads what Keras wrote: .keras, .h5, a folder with the files of a .keras, or the JSON of "
        "model.to_json() with --weights. Sequential and Functional models, with the loss, the "
        "metrics and the optimizer that compile() was given.\n\n"
        "What has no equal here is listed in one go, each with its layer and what to do; the exit "
        "code is then 2 and nothing is written. Python code in a file (Lambda) is never run. Files "
        "are not trusted: links, bombs and damage are refused.",
    .examples = "tpucl import model.keras\nonly look\n"
                "tpucl import model.keras -o run\nwrite run/run.json and run/params.safetensors\n"
                "tpucl import model.json --weights model.weights.h5 -o run\nfrom two files",
    .options = options,
    .run = run_import,
};
