/* SPDX-License-Identifier: Apache-2.0
 * tpucl devices: which OpenCL devices there are, and which one a selector means. */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include <tpucl/tune.h>
#include "cmd.h"
#include "ui.h"

typedef struct devices_values {
    tp_cmd_common common;
    const char *device, *why;
} devices_values;

static const tp_opt_row options[] = {
    {.name = "device",
     .kind = TP_OPT_TEXT,
     .value = "SELECTOR",
     .offset = offsetof(devices_values, device),
     .help = "show only the device that this selector means: '0', '0:1', 'gpu', part of a name"},
    {.name = "why",
     .kind = TP_OPT_TEXT,
     .value = "PRODUCT",
     .offset = offsetof(devices_values, why),
     .help = "say which kernel computes a product on the device, with which settings, and why: "
             "'dot_general:1024x1024x1024', 'convolution:32x56x56x64x64,3x3,stride=2'"},
    {.name = NULL},
};

static void print_table(const tpucl_device_list *list, int32_t only)
{
    tp_ui_table table;
    char bytes[TP_UI_TEXT_BYTES];
    tp_ui_table_begin(&table, "selector|type|name|platform|>units|>memory|usable");
    for (int32_t i = 0; i < tpucl_device_list_count(list); ++i) {
        tpucl_device_info info;
        if (only >= 0 && i != only) continue;
        if (tpucl_device_list_info(list, i, &info) != TPUCL_OK) continue;
        tp_ui_cell(&table, "%s", info.selector);
        tp_ui_cell(&table, "%s", info.type);
        tp_ui_cell(&table, "%s", info.name);
        tp_ui_cell(&table, "%s", info.platform);
        tp_ui_cell(&table, "%u", (unsigned)info.compute_units);
        tp_ui_cell(&table, "%s", tp_ui_bytes(info.memory_bytes, bytes));
        tp_ui_cell(&table, "%s%s", info.usable ? "yes" : "no: ", info.usable ? "" : info.reason);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_notes(const tpucl_device_list *list)
{
    for (int32_t i = 0; tpucl_device_list_note(list, i); ++i)
        fprintf(stderr, "note: %s\n", tpucl_device_list_note(list, i));
}

/* How many devices can be used, of those shown. */
static int32_t usable_count(const tpucl_device_list *list, int32_t only)
{
    int32_t usable = 0;
    for (int32_t i = 0; i < tpucl_device_list_count(list); ++i) {
        tpucl_device_info info;
        if ((only < 0 || i == only) && tpucl_device_list_info(list, i, &info) == TPUCL_OK)
            usable += info.usable;
    }
    return usable;
}

static tp_exit show(const tp_cmd *cmd, const tpucl_device_list *list, const devices_values *values)
{
    int32_t only = -1;
    tpucl_status status;
    if (values->device &&
        (status = tpucl_device_list_select(list, values->device, &only)) != TPUCL_OK)
        return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->common) && tpucl_device_list_count(list) > 0)
        print_table(list, only);
    print_notes(list);
    char *json = NULL;
    if ((status = tpucl_device_list_json(list, only, &json)) != TPUCL_OK)
        return tp_cmd_fail(cmd, status);
    tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(json);
    if (code == TP_EXIT_DONE && usable_count(list, only) == 0) {
        fprintf(stderr,
                "tpucl devices: no usable OpenCL device; a driver for the processor is in the "
                "package 'pocl-opencl-icd'\n");
        code = TP_EXIT_NO_DEVICE;
    }
    return code;
}

static tp_exit show_why(const tp_cmd *cmd, const devices_values *values)
{
    char *text = NULL, *json = NULL;
    const tpucl_status status = tpucl_why(values->device, values->why, &text, &json);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->common)) fputs(text, stdout);
    const tp_exit code = tp_cmd_write_json(cmd, values->common.json, json);
    tpucl_free(text);
    tpucl_free(json);
    return code;
}

static tp_exit run_devices(const tp_cmd *cmd, int argc, char **argv)
{
    devices_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (values.why) return show_why(cmd, &values);
    tpucl_device_list *list = NULL;
    tpucl_status status = tpucl_device_list_create(&list);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    code = show(cmd, list, &values);
    tpucl_device_list_destroy(list);
    return code;
}

const tp_cmd tp_cmd_devices = {
    .name = "devices",
    .summary = "list the OpenCL devices and how to select them",
    .operands = "",
    .description =
        "Lists every OpenCL device with the selector that other commands take, whether "
        "it can be used, "
        "and if not why. What drivers were skipped, and why, goes to standard error.\n\n"
        "A selector is the number of a device in this list ('1'), platform and device "
        "('0:1'), a type "
        "('gpu', 'cpu', 'accelerator'), or part of a device's, vendor's or platform's "
        "name. '/4' behind "
        "it means four equal sub-devices of it. Without a selector TPUCL_DEVICE counts, "
        "then the first "
        "GPU, accelerator, CPU.\n\n"
        "--why tells how a product would be computed: what each place for tuning "
        "records says of it (yours, those that come with tpucl), which variant is "
        "taken with which settings, and with which sentence the others decline. M, N and "
        "K of dot_general, or IMAGESxHxWxCxFILTERS,KHxKW of convolution, "
        "convolution_input_grad and convolution_filter_grad; behind them, with commas, "
        "the options of a problem line ('tpucl help tune').",
    .examples = "tpucl devices\nthe table\n"
                "tpucl devices --json - | jq -r '.devices[].selector'\nfor scripts\n"
                "tpucl devices --device pocl\nwhich device does that mean?\n"
                "tpucl devices --why dot_general:1024x1024x1024\nwhy is it computed like that?",
    .options = options,
    .run = run_devices,
};
