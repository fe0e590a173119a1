/* SPDX-License-Identifier: Apache-2.0
 * tpucl export: a model and its parameters as a file that Keras loads. */
#include <stdio.h>
#include <tpucl/tools.h>
#include <tpucl/version.h>
#include "cmd.h"

typedef struct export_values {
    tp_cmd_common common;
    const char *params, *output;
} export_values;

static const tp_opt_row options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .offset = offsetof(export_values, output),
     .complete = TP_COMPLETE_FILE,
     .help = "what to write: FILE.keras, or FILE.weights.h5 for the weights alone; default "
             "model.keras"},
    {.name = "params",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .offset = offsetof(export_values, params),
     .complete = TP_COMPLETE_FILE,
     .help = "the parameters; default params.safetensors beside CONFIG"},
    {.name = NULL},
};

/* "run/run.json" to "run/params.safetensors". */
static const char *beside(const char *config, char *path, size_t size)
{
    int length = 0;
    for (int i = 0; config[i]; i++)
        if (config[i] == '/') length = i + 1;
    snprintf(path, size, "%.*sparams.safetensors", length, config);
    return path;
}

static tp_exit run_export(const tp_cmd *cmd, int argc, char **argv)
{
    export_values values = {.output = "model.keras"};
    tp_opt_operands operands;
    tp_exit code;
    char path[4096], json[128];
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (!values.params) values.params = beside(operands.items[0], path, sizeof path);
    const tpucl_status status = tpucl_export(operands.items[0], values.params, values.output);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values.common)) printf("written to %s\n", values.output);
    snprintf(json, sizeof json, "{\"version\": \"%s\", \"written\": true}\n",
             tpucl_version_string());
    return tp_cmd_write_json(cmd, values.common.json, json);
}

const tp_cmd tp_cmd_export = {
    .name = "export",
    .summary = "write a model and its parameters as a file for Keras",
    .operands = "CONFIG",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Writes the model of CONFIG, a run configuration or the config.json of a training, with "
        "its parameters as a file that Keras 3 loads and that predicts the same there. The model "
        "is a Functional one; layers keep their names, so that 'tpucl import' gives the same "
        "parameters back. It is not compiled.",
    .examples = "tpucl export run/run.json -o model.keras\nan imported model, back again\n"
                "tpucl export out/config.json --params out/params.safetensors -o best.keras\n"
                "after a training\n"
                "tpucl export run/run.json -o model.weights.h5\nthe weights alone",
    .options = options,
    .run = run_export,
};
