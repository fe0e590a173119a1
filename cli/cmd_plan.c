/* SPDX-License-Identifier: Apache-2.0
 * tpucl plan: what a run takes, here and on other machines, before anything is allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tpucl/plan.h>
#include "keras_run.h"
#include "run_options.h"
#include "ui.h"

typedef struct plan_values {
    tp_run_values run;
    int64_t examples;
    const char *price;
    bool tensor, published, no_device;
} plan_values;

static const tp_opt_row options[] = {
    {.name = "topology",
     .kind = TP_OPT_TEXT,
     .value = "A,B,...",
     .offset = offsetof(plan_values, run.topology),
     .complete = TP_COMPLETE_TOPOLOGY,
     .help = "plan for these machines: built-in ones, JSON files, 'here' for the device at hand"},
    {.name = "set",
     .kind = TP_OPT_LIST,
     .value = "KEY=VALUE",
     .offset = offsetof(plan_values, run.set),
     .help = "change any key of the configuration ('per_core_batch=128'); as often as needed"},
    {.name = "device",
     .kind = TP_OPT_TEXT,
     .value = "SELECTOR",
     .offset = offsetof(plan_values, run.device),
     .help = "plan with this device's kernels and memory; see 'tpucl help devices'"},
    {.name = "no-device",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(plan_values, no_device),
     .help = "plan for a common CPU, whatever there is here"},
    {.name = "examples",
     .kind = TP_OPT_INT,
     .value = "N",
     .min = 1,
     .max = INT64_MAX,
     .offset = offsetof(plan_values, examples),
     .help = "of an epoch; default those of the data"},
    {.name = "price",
     .kind = TP_OPT_TEXT,
     .value = "AMOUNT",
     .offset = offsetof(plan_values, price),
     .help = "of an hour, for the cost of an epoch"},
    {.name = "tensor",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(plan_values, tensor),
     .help = "the operand is one array, 'f32[256,512,128,2]': what tiles of 8 x 128 make of it"},
    {.name = "published",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(plan_values, published),
     .help = "no operand: projections beside what others published, and how far off they are"},
    TP_RUN_OPTION_WEIGHTS,
    TP_RUN_OPTION_DATA,
    {.name = NULL},
};

/* ---- one array ---- */

static tp_exit plan_tensor(const tp_cmd *cmd, const plan_values *values, const char *type)
{
    tpucl_padded_array array;
    char bytes[TP_UI_TEXT_BYTES], row[TP_UI_TEXT_BYTES], best[TP_UI_TEXT_BYTES], json[1024];
    const tpucl_status status = tpucl_pad_array(type, &array);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    if (tp_cmd_wants_table(&values->run.common)) {
        printf("%s: %s, as declared %s in tiles, in its best layout %s\n", type,
               tp_ui_bytes(array.bytes, bytes), tp_ui_bytes(array.row_major_bytes, row),
               tp_ui_bytes(array.best_bytes, best));
        if (*array.warning) printf("warning: %s\n", array.warning);
    }
    snprintf(json, sizeof json,
             "{\"bytes\": %llu, \"row_major_bytes\": %llu, \"best_bytes\": %llu, "
             "\"warning\": %s%s%s}\n",
             (unsigned long long)array.bytes, (unsigned long long)array.row_major_bytes,
             (unsigned long long)array.best_bytes, *array.warning ? "\"" : "",
             *array.warning ? array.warning : "null", *array.warning ? "\"" : "");
    return tp_cmd_write_json(cmd, values->run.common.json, json);
}

/* ---- what was published ---- */

static void print_published(const tpucl_published_report *report)
{
    tp_ui_table table = {0};
    tpucl_published_row row;
    char value[TP_UI_TEXT_BYTES];
    tp_ui_table_begin(&table, "model|machine|class|>batch|>published|>projected|>off by|unit");
    for (int32_t i = 0; (row = tpucl_published_report_row(report, i)).model; i++) {
        tp_ui_cell(&table, "%s", row.model);
        if (row.machines > 1)
            tp_ui_cell(&table, "%d x %s", (int)row.machines, row.topology);
        else
            tp_ui_cell(&table, "%s", row.topology);
        tp_ui_cell(&table, "%s", row.machine_class);
        tp_ui_cell(&table, row.global_batch ? "%lld" : "-", (long long)row.global_batch);
        tp_ui_cell(&table, "%s", tp_ui_count(row.published, value));
        tp_ui_cell(&table, "%s", tp_ui_count(row.projected, value));
        tp_ui_cell(&table, "%.2f", row.factor);
        tp_ui_cell(&table, "%s", row.unit);
    }
    tp_ui_table_end(&table, stdout);
    const tpucl_published_summary sum = tpucl_published_report_summary(report);
    printf("%d rows, projected: off by a factor of %.2f in the geometric mean, %.2f at worst; the "
           "band holds %d (%.0f %%)\n",
           (int)sum.rows, sum.mean_factor, sum.worst_factor, (int)sum.in_band,
           sum.rows ? 100.0 * sum.in_band / sum.rows : 100.0);
}

static tp_exit plan_published(const tp_cmd *cmd, const plan_values *values)
{
    tpucl_published_report *report = NULL;
    char *json = NULL;
    tpucl_status status = tpucl_published(&report);
    if (status == TPUCL_OK) status = tpucl_published_report_json(report, &json);
    if (status != TPUCL_OK) {
        tpucl_published_report_destroy(report);
        return tp_cmd_fail(cmd, status);
    }
    if (tp_cmd_wants_table(&values->run.common)) print_published(report);
    const tp_exit code = tp_cmd_write_json(cmd, values->run.common.json, json);
    tpucl_free(json);
    tpucl_published_report_destroy(report);
    return code;
}

/* ---- tables ---- */

static void cell_bytes(tp_ui_table *table, uint64_t bytes)
{
    char text[TP_UI_TEXT_BYTES];
    if (bytes)
        tp_ui_cell(table, "%s", tp_ui_bytes(bytes, text));
    else
        tp_ui_cell(table, "-");
}

static void cell_batch(tp_ui_table *table, int64_t batch, int32_t cores)
{
    if (batch)
        tp_ui_cell(table, "%lld (%lld)", (long long)batch, (long long)batch * cores);
    else
        tp_ui_cell(table, "-");
}

static void print_rows(const tpucl_plan_report *report)
{
    tp_ui_table table = {0};
    tpucl_plan_row row;
    tp_ui_table_begin(&table, "topology|precision|>batch (all)|>HBM a core|>needs, here|>as a TPU|"
                              "fits|>largest f32|>largest bf16|>device needs|>device has|>host");
    for (int32_t i = 0; (row = tpucl_plan_report_row(report, i)).topology; i++) {
        tp_ui_cell(&table, "%s", row.topology);
        tp_ui_cell(&table, "%s", row.precision);
        cell_batch(&table, row.per_core_batch, row.cores * row.micro_batches);
        cell_bytes(&table, row.capacity_bytes);
        cell_bytes(&table, row.here_bytes);
        cell_bytes(&table, row.tpu_bytes);
        tp_ui_cell(&table, "%s", row.fits ? "yes" : "no");
        cell_batch(&table, row.largest_float32, row.cores * row.micro_batches);
        cell_batch(&table, row.largest_bfloat16, row.cores * row.micro_batches);
        cell_bytes(&table, row.device_bytes);
        cell_bytes(&table, row.device_limit_bytes);
        cell_bytes(&table, row.host_limit_bytes);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_kinds(const tpucl_plan_report *report, int32_t row)
{
    tp_ui_table table = {0};
    tpucl_plan_kind kind;
    printf("\nmemory of a core\n");
    tp_ui_table_begin(&table, "kind|>here|>as a TPU");
    for (int32_t i = 0; (kind = tpucl_plan_report_kind(report, row, i)).key; i++) {
        if (!kind.here_bytes && !kind.tpu_bytes) continue;
        tp_ui_cell(&table, "%s", kind.text);
        cell_bytes(&table, kind.here_bytes);
        cell_bytes(&table, kind.tpu_bytes);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_tensors(const tpucl_plan_report *report, int32_t row)
{
    tp_ui_table table = {0};
    tpucl_plan_tensor tensor;
    printf("\nlargest tensors at the peak\n");
    tp_ui_table_begin(&table, ">here|>as a TPU|type|layer|kind|tiles");
    for (int32_t i = 0; (tensor = tpucl_plan_report_tensor(report, row, i)).name; i++) {
        cell_bytes(&table, tensor.here_bytes);
        cell_bytes(&table, tensor.tpu_bytes);
        tp_ui_cell(&table, "%s", tensor.type);
        tp_ui_cell(&table, "%s", *tensor.layer ? tensor.layer : tensor.name);
        tp_ui_cell(&table, "%s", tensor.kind);
        tp_ui_cell(&table, "%.1f%s%s", tensor.padding, *tensor.note ? ": " : "", tensor.note);
    }
    tp_ui_table_end(&table, stdout);
}

static void cell_seconds(tp_ui_table *table, double seconds)
{
    if (seconds <= 0)
        tp_ui_cell(table, "-");
    else if (seconds < 1)
        tp_ui_cell(table, "%.3g ms", 1e3 * seconds);
    else
        tp_ui_cell(table, "%.3g s", seconds);
}

static void cell_band(tp_ui_table *table, double low, double high)
{
    const double unit = high < 1 ? 1e-3 : high < 600 ? 1 : 60;
    if (high <= 0)
        tp_ui_cell(table, "-");
    else
        tp_ui_cell(table, "%.3g-%.3g %s", low / unit, high / unit,
                   unit < 1   ? "ms"
                   : unit > 1 ? "min"
                              : "s");
}

static void cell_share(tp_ui_table *table, double share)
{
    if (share > 0)
        tp_ui_cell(table, "%.0f %%", 100 * share);
    else
        tp_ui_cell(table, "-");
}

static void print_projections(const tpucl_plan_report *report)
{
    tp_ui_table table = {0};
    tpucl_plan_row row;
    printf("\nprojected, never measured (docs/plan.md says how far off it may be)\n");
    tp_ui_table_begin(&table, "topology|class|>step|>epoch|>examples/s|limiter|>MXU lost|>of peak|"
                              ">ridge batch|>epoch costs");
    for (int32_t i = 0; (row = tpucl_plan_report_row(report, i)).topology; i++) {
        char value[TP_UI_TEXT_BYTES];
        tp_ui_cell(&table, "%s", row.topology);
        tp_ui_cell(&table, "%s", row.machine_class ? row.machine_class : "no figures");
        cell_band(&table, row.step_low_seconds, row.step_high_seconds);
        cell_band(&table, row.epoch_low_seconds, row.epoch_high_seconds);
        tp_ui_cell(&table, "%s",
                   row.machine_class ? tp_ui_count(row.examples_per_second, value) : "-");
        tp_ui_cell(&table, "%s%s", row.limiter ? row.limiter : "-",
                   row.recurrent ? " of a loop" : "");
        cell_share(&table, row.mxu_share > 0 ? 1 - row.mxu_share : 0);
        cell_share(&table, row.peak_share);
        tp_ui_cell(&table, row.ridge_batch ? "%lld" : "-", (long long)row.ridge_batch);
        tp_ui_cell(&table, row.epoch_cost > 0 ? "%.3g" : "-", row.epoch_cost);
    }
    tp_ui_table_end(&table, stdout);
}

enum { SHOWN_LAYERS = 12 };

static void print_layers(const tpucl_plan_report *report, int32_t row)
{
    tp_ui_table table = {0};
    tpucl_plan_layer layer;
    if (!tpucl_plan_report_row(report, row).machine_class) return;
    printf("\nprojected time of layers on %s, the longest\n",
           tpucl_plan_report_row(report, row).topology);
    tp_ui_table_begin(&table, ">time|layer|limiter|>MXU used");
    for (int32_t i = 0; i < SHOWN_LAYERS && (layer = tpucl_plan_report_layer(report, row, i)).name;
         i++) {
        cell_seconds(&table, layer.seconds);
        tp_ui_cell(&table, "%s", *layer.name ? layer.name : "(loss, optimizer)");
        tp_ui_cell(&table, "%s", layer.limiter);
        cell_share(&table, layer.mxu_share);
    }
    tp_ui_table_end(&table, stdout);
}

static void print_report(const tpucl_plan_report *report)
{
    const char *text;
    const tpucl_plan_row first = tpucl_plan_report_row(report, 0);
    print_rows(report);
    print_kinds(report, 0);
    print_tensors(report, 0);
    print_projections(report);
    print_layers(report, 0);
    for (int32_t i = 0; (text = tpucl_plan_report_warning(report, 0, i)) != NULL; i++)
        printf("%swarning%s: %s\n", tp_ui_bold(stdout), tp_ui_plain(stdout), text);
    for (int32_t i = 0; (text = tpucl_plan_report_note(report, i)) != NULL; i++)
        printf("note: %s\n", text);
    if (first.refusal)
        printf("%sdoes not fit%s: %s\n", tp_ui_red(stdout), tp_ui_plain(stdout), first.refusal);
}

/* ---- the command ---- */

static bool read_price(const char *text, double *out_price)
{
    char *end = NULL;
    *out_price = text ? strtod(text, &end) : 0;
    return !text || (end != text && *end == '\0' && *out_price >= 0 && *out_price <= 1e9);
}

static bool has_data_override(const tp_run_values *values)
{
    bool found = values->data != NULL;
    for (int32_t i = 0; i < values->set.count; i++)
        found = found || !strncmp(values->set.items[i], "data", 4);
    return found;
}

static void on_progress(void *user, const char *what, int32_t done, int32_t total)
{
    tp_ui_progress_draw(user, "planning", done, total, 0, "", what);
}

static tpucl_status make_plan(const plan_values *values, const char *operand,
                              tpucl_plan_options *plan, tpucl_plan_report **out_report)
{
    const bool is_model = tp_keras_run_is_model(operand);
    tpucl_run_options run = tp_run_settings(&values->run, is_model ? NULL : operand);
    tp_ui_progress progress = {0};
    tpucl_import *import = NULL;
    tpucl_status status = TPUCL_OK;
    plan->progress = on_progress;
    plan->user = &progress;
    if (is_model) {
        tpucl_import_options model = tpucl_import_options_default();
        model.model = operand;
        model.weights = values->run.weights;
        status = tpucl_import_create(&model, &import);
        if (status == TPUCL_OK && tpucl_import_get_summary(import)->errors)
            tp_keras_run_print_findings(import, "error", stderr);
        run.config_text = status == TPUCL_OK ? tpucl_import_config(import) : NULL;
        plan->without_data = !has_data_override(&values->run);
    }
    if (status == TPUCL_OK) status = tpucl_plan(&run, plan, out_report);
    tpucl_import_destroy(import);
    tp_ui_progress_clear();
    return status;
}

static tp_exit run_plan(const tp_cmd *cmd, int argc, char **argv)
{
    plan_values values = {.tensor = false};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (values.published) return plan_published(cmd, &values);
    if (operands.count < 1) return tp_cmd_fail_usage(cmd, "CONFIG is missing");
    if (values.tensor) return plan_tensor(cmd, &values, operands.items[0]);
    tpucl_plan_options plan = tpucl_plan_options_default();
    if (!read_price(values.price, &plan.price_per_hour))
        return tp_cmd_fail_usage(cmd, "--price is '%s', expected a number from 0", values.price);
    tpucl_plan_report *report = NULL;
    char *json = NULL;
    plan.topologies = values.run.topology;
    plan.without_device = values.no_device;
    plan.examples = values.examples;
    values.run.topology = NULL; /* each of the list becomes an override of its own */
    tpucl_status status = make_plan(&values, operands.items[0], &plan, &report);
    if (status == TPUCL_OK) status = tpucl_plan_report_json(report, &json);
    if (status != TPUCL_OK) {
        tpucl_plan_report_destroy(report);
        return tp_cmd_fail(cmd, status);
    }
    if (tp_cmd_wants_table(&values.run.common)) print_report(report);
    code = tp_cmd_write_json(cmd, values.run.common.json, json);
    tpucl_free(json);
    tpucl_plan_report_destroy(report);
    return code;
}

const tp_cmd tp_cmd_plan = {
    .name = "plan",
    .summary = "what a run takes here and on other machines, and the largest batch that fits",
    .operands = "[CONFIG|MODEL]",
    .min_operands = 0,
    .max_operands = 1,
    .complete = TP_COMPLETE_FILE,
    .description =
        "Compiles one core's training step for each topology and counts what its memory holds "
        "at the peak: bytes that a training here would allocate, to the byte, and bytes that a "
        "real TPU would need, with its tiles of 8 x 128 and what its system takes first. The "
        "larger of both is held against the topology's HBM; the memory of the device and of the "
        "host here are limits of their own, in their own columns. The largest batches are found "
        "by planning alone; 'batch=\"auto\"' in a configuration takes them.\n\n"
        "Time is projected, as a band: a roofline of every operation with one efficiency for each "
        "class of machine, fitted on what others published; --published shows those rows. "
        "Nothing of it was measured here.\n\n"
        "Kinds of memory, the largest tensors and warnings are those of the first topology. "
        "Nothing runs. Without a device, or with --no-device, it is planned for a common CPU; "
        "without data, for what the model says that an example is.",
    .examples = "tpucl plan configs/fashion-conv.json\nthe run as it is\n"
                "tpucl plan configs/fashion-conv.json --topology v2-8,v3-8,k80\nsome machines\n"
                "tpucl plan model.keras --topology v3-8 --set per_core_batch=64\na Keras model\n"
                "tpucl plan run.json --topology v2-8,a100 --price 4.5\nwith the cost of an epoch\n"
                "tpucl plan --published\nhow far off projections are\n"
                "tpucl plan --tensor f32[256,512,128,2]\nwhat tiles make of one array",
    .options = options,
    .run = run_plan,
};
