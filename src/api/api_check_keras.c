/* SPDX-License-Identifier: Apache-2.0
 * Checking a model that Keras wrote: what cannot be taken over, all at once, then the training step that it would be.
 * There need not be data: a single example of zeros has the shapes that inputs and labels must have. */
#include <string.h>
#include "api/check_internal.h"
#include "core/alloc.h"
#include "keras/import.h"

/* ---- findings of the import ---- */

static tp_severity severity_of(const tp_keras_finding *finding)
{
    if (finding->is_error) return TP_SEVERITY_ERROR;
    return finding->rule == TP_KERAS_WIDE ? TP_SEVERITY_WARNING : TP_SEVERITY_NOTE;
}

static tpucl_status add_findings(const tp_keras_findings *findings, tp_check_report *report)
{
    for (int32_t i = 0; i < findings->count; i++) {
        const tp_keras_finding *found = &findings->items[i];
        TP_TRY(tp_check_add(report, severity_of(found), tp_keras_rule_name(found->rule),
                            found->layer, found->remedy, "%s%s%s", found->kind,
                            *found->kind ? ": " : "", found->what));
    }
    return TPUCL_OK;
}

/* ---- the run that it would be ---- */

/* Overrides with stand-ins in front for what a configuration must have; the caller frees the list. */
typedef struct override_list {
    const char **items;
    size_t count;
    bool has_data;
} override_list;

static bool is_about(const char *override, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(override, key, length) == 0 &&
           (override[length] == '=' || override[length] == '.');
}

static tpucl_status list_overrides(const tpucl_run_options *options, const tp_keras_import *import,
                                   override_list *out)
{
    const size_t given = options->override_count > 0 ? (size_t)options->override_count : 0;
    out->items = TP_NEW_ARRAY(const char *, given + 3);
    if (!out->items) return TPUCL_OUT_OF_MEMORY;
    if (!import->has_loss) out->items[out->count++] = "loss={\"name\":\"mean_squared_error\"}";
    if (!import->has_optimizer) out->items[out->count++] = "optimizer={\"name\":\"SGD\"}";
    for (size_t i = 0; i < given; i++) {
        out->items[out->count++] = options->overrides[i];
        out->has_data = out->has_data || is_about(options->overrides[i], "data");
    }
    return TPUCL_OK;
}

/* The loss that judges an output, as train/session_model.c chooses it. */
static tp_model_loss loss_of(const tp_config *config, const char *output)
{
    for (size_t i = 0; i < config->losses.count; i++)
        if (strcmp(config->losses.items[i].output, output) == 0)
            return (tp_model_loss)config->losses.items[i].name;
    return (tp_model_loss)config->loss.name;
}

static tpucl_status add_label(const tp_model *model, const tp_config *config, int32_t output,
                              tp_field *field)
{
    const char *name = tp_model_output_name(model, output);
    tp_shape whole;
    field->name = tp_model_output_count(model) == 1 ? "label" : name;
    TP_TRY(tp_model_label_at(model, output, loss_of(config, name), 1, &field->dtype, &whole));
    TP_TRY(tp_shape_init(&field->shape, whole.rank - 1, whole.dims + 1));
    field->bytes = (uint64_t)tp_shape_bytes(&field->shape, field->dtype);
    return TPUCL_OK;
}

tpucl_status tp_api_make_example(const tp_model *model, const tp_config *config,
                                 tp_source **out_source)
{
    const int32_t inputs = tp_model_input_count(model), outputs = tp_model_output_count(model);
    tp_source *source = TP_NEW(tp_source);
    tpucl_status status = source ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK && inputs + outputs > TP_SOURCE_MAX_FIELDS)
        status =
            TP_FAIL(TPUCL_UNSUPPORTED, "the model has %d inputs and outputs, expected at most %d",
                    inputs + outputs, TP_SOURCE_MAX_FIELDS);
    for (int32_t i = 0; i < inputs + outputs && status == TPUCL_OK; i++) {
        tp_field field = {0};
        if (i < inputs) {
            const tp_model_input *input = tp_model_input_at(model, i);
            field = (tp_field){.name = input->name, .dtype = input->dtype, .shape = input->shape};
            field.bytes = (uint64_t)tp_shape_bytes(&field.shape, field.dtype);
        } else {
            status = add_label(model, config, i - inputs, &field);
        }
        if (status != TPUCL_OK) break;
        field.name = tp_alloc_strdup(field.name);
        source->fields[i] = field;
        source->arrays[i] = TP_NEW_ARRAY(char, field.bytes + 1);
        source->field_count = i + 1;
        if (!field.name || !source->arrays[i]) status = TPUCL_OUT_OF_MEMORY;
    }
    if (status != TPUCL_OK) {
        tp_source_destroy(source);
        return status;
    }
    source->example_count = 1;
    source->label_count = outputs;
    *out_source = source;
    return TPUCL_OK;
}

static tpucl_status check_step(const tp_keras_import *import, const override_list *overrides,
                               tpucl_check_report *report)
{
    tp_session_options settings = {.plan_only = true};
    tp_session *session = NULL;
    TP_TRY(tp_config_parse(import->config, strlen(import->config), import->mapped.name,
                           overrides->items, overrides->count, &settings.config));
    if (!overrides->has_data) {
        const tpucl_status status =
            tp_api_make_example(import->model, settings.config, &settings.source);
        if (status != TPUCL_OK) {
            tp_config_destroy(settings.config);
            return status;
        }
    }
    TP_TRY(tp_session_create(&settings, &session));
    const int64_t examples =
        overrides->has_data ? tp_session_train_source(session)->example_count : 0;
    const tpucl_status status = tp_api_check_session(session, examples, report);
    tp_session_destroy(session);
    return status;
}

/* Parts of the model are refused, so that there is no step; what batch and precision are is known nevertheless. */
static tpucl_status check_rest(const tp_keras_import *import, const override_list *overrides,
                               tpucl_check_report *report)
{
    static const char format[] =
        "{\"name\":\"model\",\"precision\":\"%s\",\"model\":{\"layers\":[{\"type\":\"Flatten\"}]}}";
    const char *text = tp_arena_printf(report->report->arena, format, import->mapped.policy);
    tp_config *config = NULL;
    tp_topology *topology = NULL;
    if (!text) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_config_parse(text, strlen(text), import->mapped.name, overrides->items,
                           overrides->count, &config));
    tpucl_status status = tp_topology_load(config->topology, &topology);
    if (status == TPUCL_OK) status = tp_config_resolve(config, topology);
    if (status == TPUCL_OK) {
        const tp_check_input input = {.config = config, .topology = topology};
        status = tp_api_check_input(&input, report);
        report->summary.name = tp_arena_strdup(report->report->arena, import->mapped.name);
        if (!report->summary.name) status = TPUCL_OUT_OF_MEMORY;
    }
    tp_topology_destroy(topology);
    tp_config_destroy(config);
    return status;
}

static tpucl_status check_import(const tp_keras_import *import, const tpucl_run_options *options,
                                 tpucl_check_report *report)
{
    override_list overrides = {0};
    TP_TRY(add_findings(&import->mapped.findings, report->report));
    TP_TRY(list_overrides(options, import, &overrides));
    const tpucl_status status = import->config ? check_step(import, &overrides, report)
                                               : check_rest(import, &overrides, report);
    tp_free(overrides.items);
    return status;
}

static tpucl_status check(const tpucl_import_options *model, const tpucl_run_options *options,
                          tpucl_check_report *report)
{
    tp_keras_import *import = NULL;
    tpucl_status status = tp_keras_import_file(model->model, model->weights, &import);
    if (status == TPUCL_OK) status = check_import(import, options, report);
    tp_keras_import_destroy(import);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status != TPUCL_OK) TP_TRY(tp_check_add_error(report->report, "refused"));
    return tp_check_sort(report->report);
}

tpucl_status tpucl_check_keras(const tpucl_import_options *model, const tpucl_run_options *options,
                               tpucl_check_report **out_report)
{
    TP_API_NEED(out_report);
    *out_report = NULL;
    tpucl_import_options what;
    tpucl_run_options all;
    tpucl_check_report *report = NULL;
    TP_TRY(TP_API_OPTIONS(model, &what, tpucl_import_options));
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_run_options));
    if (!what.model) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'model' is NULL, expected a path");
    if (all.override_count && !all.overrides)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "override_count is %d, but 'overrides' is NULL",
                       (int)all.override_count);
    TP_TRY(tp_api_check_create(&report));
    const tpucl_status status = check(&what, &all, report);
    if (status != TPUCL_OK) {
        tpucl_check_report_destroy(report);
        return status;
    }
    tp_api_check_count(report);
    *out_report = report;
    return TPUCL_OK;
}
