/* SPDX-License-Identifier: Apache-2.0
 * See keras_run.h. */
#include "keras_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ui.h"

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), count = strlen(end);
    return length > count && !strcmp(text + length - count, end);
}

/* What to_json() wrote begins with the class of the model; no configuration of a run has such a key. */
static bool begins_with_class(const char *path)
{
    char text[4096];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = '\0';
    return strstr(text, "\"class_name\"") != NULL;
}

bool tp_keras_run_is_model(const char *operand)
{
    char inner[4096];
    if (ends_in(operand, ".keras") || ends_in(operand, ".h5") || ends_in(operand, ".hdf5"))
        return true;
    if (ends_in(operand, ".json")) return begins_with_class(operand);
    snprintf(inner, sizeof inner, "%s/config.json", operand); /* an unzipped .keras */
    return begins_with_class(inner);
}

void tp_keras_run_print_findings(const tpucl_import *import, const char *severity, FILE *out)
{
    tpucl_finding finding;
    for (int32_t i = 0; (finding = tpucl_import_finding(import, i)).text; ++i) {
        if (strcmp(finding.severity, severity) != 0) continue;
        fprintf(out, "%s%s%s", !strcmp(severity, "error") ? tp_ui_red(out) : "", finding.severity,
                tp_ui_plain(out));
        if (*finding.where) fprintf(out, " %s '%s'", finding.rule, finding.where);
        fprintf(out, ": %s\n", finding.text);
        if (*finding.remedy) fprintf(out, "    %s\n", finding.remedy);
    }
}

/* The weights go through a file in a folder of their own, which is removed again. */
static tpucl_status load_weights(const tpucl_import *import, tpucl_run *run)
{
    const char *base = getenv("TMPDIR");
    char folder[3800], path[4096];
    if (!tpucl_import_get_summary(import)->weights) return TPUCL_OK;
    snprintf(folder, sizeof folder, "%s/tpucl-import-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder)) snprintf(folder, sizeof folder, "/nowhere/tpucl-import");
    tpucl_status status = tpucl_import_save(import, folder);
    snprintf(path, sizeof path, "%s/params.safetensors", folder);
    if (status == TPUCL_OK) status = tpucl_run_load_params(run, path);
    unlink(path);
    snprintf(path, sizeof path, "%s/run.json", folder);
    unlink(path);
    rmdir(folder);
    return status;
}

static tpucl_status open_run(const tp_run_values *values, const tpucl_import *import,
                             tpucl_run **out_run)
{
    tpucl_status status = tp_run_open_text(values, tpucl_import_config(import), out_run);
    if (status == TPUCL_OK) status = load_weights(import, *out_run);
    return status;
}

bool tp_keras_run_open(const tp_cmd *cmd, const tp_run_values *values, const char *model,
                       tpucl_run **out_run, tp_exit *out_exit)
{
    tpucl_import *import = NULL;
    tpucl_import_options options = tpucl_import_options_default();
    options.model = model;
    options.weights = values->weights;
    tpucl_status status = tpucl_import_create(&options, &import);
    if (status == TPUCL_OK && tpucl_import_get_summary(import)->errors) {
        tp_keras_run_print_findings(import, "error", stderr);
        fprintf(stderr, "tpucl %s: '%s' cannot be taken over\n", cmd->name, model);
        tpucl_import_destroy(import);
        *out_exit = TP_EXIT_USAGE;
        return false;
    }
    if (status == TPUCL_OK) status = open_run(values, import, out_run);
    if (status == TPUCL_OK)
        tp_keras_run_print_findings(import, "note", stderr);
    else
        *out_exit = tp_cmd_fail(cmd, status);
    tpucl_import_destroy(import);
    return status == TPUCL_OK;
}
