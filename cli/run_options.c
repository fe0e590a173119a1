/* SPDX-License-Identifier: Apache-2.0
 * Options become overrides of the configuration, so that the run's own record (config.json, its
 * digest) shows what was really run. */
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ui.h"

enum { MAX_OVERRIDES = TP_OPT_MAX_LIST + 8, TEXT_BYTES = 8192 };

typedef struct overrides {
    const char *items[MAX_OVERRIDES];
    int32_t count;
    char texts[8][TEXT_BYTES];
    int texts_used;
} overrides;

static void add_int(overrides *list, const char *key, int64_t value)
{
    char *text = list->texts[list->texts_used++];
    snprintf(text, TEXT_BYTES, "%s=%lld", key, (long long)value);
    list->items[list->count++] = text;
}

/* As a JSON string, so that a topology called "8" stays text. What does not fit is cut, and then
 * named in the message that the file does not exist. */
static void add_text(overrides *list, const char *key, const char *value)
{
    char *text = list->texts[list->texts_used++];
    size_t len = (size_t)snprintf(text, TEXT_BYTES, "%s=\"", key);
    for (; *value && len + 8 < TEXT_BYTES; ++value) {
        if (*value == '"' || *value == '\\') text[len++] = '\\';
        if ((unsigned char)*value < 0x20)
            len += (size_t)snprintf(text + len, 8, "\\u%04x", (unsigned)*value);
        else
            text[len++] = *value;
    }
    memcpy(text + len, "\"", 2);
    list->items[list->count++] = text;
}

/* Kernels are built when they are first needed, the evaluation's during training: so this
 * outlives the calls. */
static tp_ui_progress building;

static void on_building(void *user, const char *what, int32_t done, int32_t total)
{
    char detail[160];
    if (done <= 1) memset(user, 0, sizeof building);
    if (total)
        snprintf(detail, sizeof detail, "%d/%d %s", (int)done, (int)total, what);
    else
        snprintf(detail, sizeof detail, "%s", what);
    tp_ui_progress_draw(user, "building kernels", done, total, 0, "", detail);
}

tpucl_run_options tp_run_settings(const tp_run_values *values, const char *config_file)
{
    static overrides list; /* large for a stack, and there is one run in a process */
    memset(&list, 0, sizeof list);
    for (int32_t i = 0; i < values->set.count; ++i)
        list.items[list.count++] = values->set.items[i];
    if (values->topology) add_text(&list, "topology", values->topology);
    if (values->data) add_text(&list, "data.dataset", values->data);
    if (values->output_dir) add_text(&list, "output_dir", values->output_dir);
    if (values->wave_cores) add_int(&list, "wave_cores", values->wave_cores);
    if (values->epochs) add_int(&list, "epochs", values->epochs);
    if (values->steps) add_int(&list, "steps", values->steps);

    tpucl_run_options options = tpucl_run_options_default();
    options.config_file = config_file;
    options.overrides = list.items;
    options.override_count = list.count;
    options.device = values->device;
    options.split = (int32_t)values->split;
    options.synchronous = values->synchronous;
    options.overwrite = values->overwrite;
    return options;
}

static tpucl_status open_run(tpucl_run_options options, tpucl_run **out_run)
{
    options.building = on_building;
    options.building_user = &building;
    tpucl_status status = tpucl_run_create(&options, out_run);
    tp_ui_progress_clear();
    return status;
}

tpucl_status tp_run_open(const tp_run_values *values, const char *config_file, tpucl_run **out_run)
{
    return open_run(tp_run_settings(values, config_file), out_run);
}

tpucl_status tp_run_open_text(const tp_run_values *values, const char *config_text,
                              tpucl_run **out_run)
{
    tpucl_run_options options = tp_run_settings(values, NULL);
    options.config_text = config_text;
    return open_run(options, out_run);
}

static void print_devices(const tpucl_run *run, int32_t count)
{
    bool has_unit = false;
    for (int32_t i = 0; i < count; ++i) {
        tpucl_device_info device = {0};
        if (tpucl_run_device_info(run, i, &device) == TPUCL_OK)
            fprintf(stderr, "device %s: %s (%s)\n", device.selector, device.name, device.platform);
        has_unit = has_unit || device.matrix_unit[0];
    }
    if (has_unit && strcmp(tpucl_run_get_info(run)->math, "exact") == 0)
        fprintf(stderr,
                "matrix units rest: they do not keep the numeric contract; --set math=fast uses "
                "them, for other bits and more speed\n");
    if (!count) fprintf(stderr, "no device: the reference interpreter computes\n");
}

void tp_run_print_summary(const tpucl_run *run)
{
    const tpucl_run_info *info = tpucl_run_get_info(run);
    char count[TP_UI_TEXT_BYTES], peak[TP_UI_TEXT_BYTES];
    fprintf(stderr, "%s: %s parameters, %s, %s\n", info->name,
            tp_ui_count((double)info->parameter_count, count), info->precision, info->optimizer);
    fprintf(stderr, "topology %s: %d core%s on %d device%s, batch %lld per core, %lld in all",
            info->topology, (int)info->cores, info->cores == 1 ? "" : "s", (int)info->devices,
            info->devices == 1 ? "" : "s", (long long)info->per_core_batch,
            (long long)info->global_batch);
    if (info->peak_core_bytes)
        fprintf(stderr, ", %s per core", tp_ui_bytes(info->peak_core_bytes, peak));
    fputc('\n', stderr);
    print_devices(run, info->devices);
}
