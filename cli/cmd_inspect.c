/* SPDX-License-Identifier: Apache-2.0
 * tpucl inspect: what is in a file or folder. */
#include <stdio.h>
#include <string.h>
#include <tpucl/inspect.h>
#include <tpucl/tools.h>
#include "cmd.h"
#include "ui.h"

typedef struct inspect_values {
    tp_cmd_common common;
} inspect_values;

static const tp_opt_row options[] = {
    {.name = NULL},
};

static void print_table(const tpucl_inspection *found, const char *path)
{
    char bytes[TP_UI_TEXT_BYTES];
    tpucl_inspection_row row;
    int widest = 4, type = 4;
    printf("%s: %s: %s\n", path, tpucl_inspection_kind(found), tpucl_inspection_summary(found));
    for (int32_t i = 0; (row = tpucl_inspection_row_at(found, i)).name; i++) {
        const int name_width = (int)strlen(row.name), type_width = (int)strlen(row.type);
        if (name_width > widest) widest = name_width < 60 ? name_width : 60;
        if (type_width > type) type = type_width < 40 ? type_width : 40;
    }
    printf("%s%-*s  %-*s  %10s  note%s\n", tp_ui_bold(stdout), widest, "name", type, "type",
           "bytes", tp_ui_plain(stdout));
    for (int32_t i = 0; (row = tpucl_inspection_row_at(found, i)).name; i++)
        printf("%-*s  %-*s  %10s  %s%s%s\n", widest, row.name, type, row.type,
               row.bytes ? tp_ui_bytes(row.bytes, bytes) : "-", row.is_bad ? tp_ui_red(stdout) : "",
               row.note, row.is_bad ? tp_ui_plain(stdout) : "");
}

static tp_exit run(const tp_cmd *cmd, int argc, char **argv)
{
    inspect_values values = {0};
    tp_opt_operands operands;
    tp_exit code = TP_EXIT_DONE;
    tpucl_inspection *found = NULL;
    char *json = NULL;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    const char *path = operands.items[0];
    if (tp_cmd_would_replace(&values.common, path))
        return tp_cmd_fail_usage(cmd, "--json would replace '%s', which is read", path);
    const tpucl_status status = tpucl_inspect(path, &found);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values.common)) print_table(found, path);
    if (values.common.json) {
        const tpucl_status made = tpucl_inspection_json(found, &json);
        code = made == TPUCL_OK ? tp_cmd_write_json(cmd, values.common.json, json)
                                : tp_cmd_fail(cmd, made);
        tpucl_free(json);
    }
    if (code == TP_EXIT_DONE && tpucl_inspection_faults(found)) code = TP_EXIT_FAILED;
    tpucl_inspection_destroy(found);
    return code;
}

const tp_cmd tp_cmd_inspect = {
    .name = "inspect",
    .summary = "look into checkpoints, models, tensors and logs",
    .operands = "PATH",
    .min_operands = 1,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description = "Says what PATH holds, which is seen from its content: a folder of checkpoints "
                   "or one of them, a "
                   ".safetensors file, a Keras file of a model or of weights, a file of "
                   "TensorBoard's events or a folder of "
                   "such. Checkpoints and events are compared with their checksums on the way.\n\n"
                   "The exit code is 1 when something is damaged or was not finished. Files of "
                   "records have 'tpucl records "
                   "inspect'.",
    .examples = "tpucl inspect out/checkpoints\nwhich steps there are, and whether they are whole\n"
                "tpucl inspect out/checkpoints/step-000000001200 --json -\nits tensors\n"
                "tpucl inspect out/logs/train\nscalars, images and histograms, with their steps\n"
                "tpucl inspect model.keras\nits weights",
    .options = options,
    .run = run,
};
