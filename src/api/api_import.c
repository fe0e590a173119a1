/* SPDX-License-Identifier: Apache-2.0
 * Keras files: import and export. */
#include <tpucl/tools.h>
#include "api/handles.h"
#include "core/alloc.h"
#include "core/json_write.h"
#include "keras/export.h"
#include "keras/import.h"

struct tpucl_import {
    tp_keras_import *import;
    tpucl_import_summary summary;
};

static void summarise(tpucl_import *handle)
{
    const tp_keras_import *import = handle->import;
    handle->summary = (tpucl_import_summary){.name = import->mapped.name,
                                             .keras_version = import->keras_version,
                                             .precision = import->mapped.policy,
                                             .layers = import->row_count,
                                             .weights = import->tensor_count};
    if (!handle->summary.precision) handle->summary.precision = "";
    for (int32_t i = 0; i < import->row_count; i++)
        handle->summary.params += import->rows[i].params;
    for (int32_t i = 0; i < import->mapped.findings.count; i++)
        if (import->mapped.findings.items[i].is_error)
            handle->summary.errors++;
        else
            handle->summary.notes++;
}

tpucl_status tpucl_import_create(const tpucl_import_options *options, tpucl_import **out_import)
{
    TP_API_NEED(out_import);
    *out_import = NULL;
    tpucl_import_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_import_options));
    if (!all.model) return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'model' is NULL, expected a path");
    tpucl_import *handle = TP_NEW(tpucl_import);
    if (!handle) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_keras_import_file(all.model, all.weights, &handle->import);
    if (status != TPUCL_OK) {
        tp_free(handle);
        return status;
    }
    summarise(handle);
    *out_import = handle;
    return TPUCL_OK;
}

void tpucl_import_destroy(tpucl_import *import)
{
    if (!import) return;
    tp_keras_import_destroy(import->import);
    tp_free(import);
}

const tpucl_import_summary *tpucl_import_get_summary(const tpucl_import *import)
{
    return import ? &import->summary : NULL;
}

tpucl_import_layer tpucl_import_layer_at(const tpucl_import *import, int32_t index)
{
    tpucl_import_layer layer;
    memset(&layer, 0, sizeof layer);
    if (!import || index < 0 || index >= import->import->row_count) return layer;
    const tp_keras_import_row *row = &import->import->rows[index];
    layer.name = row->name;
    layer.type = row->kind;
    layer.output.rank = row->output.rank;
    for (int i = 0; i < row->output.rank; i++)
        layer.output.dims[i] = row->output.dims[i];
    layer.params = row->params;
    layer.source = row->source;
    return layer;
}

tpucl_finding tpucl_import_finding(const tpucl_import *import, int32_t index)
{
    const tp_keras_findings *findings = import ? &import->import->mapped.findings : NULL;
    int32_t seen = 0;
    for (int pass = 0; findings && pass < 2; pass++)
        for (int32_t i = 0; i < findings->count; i++) {
            const tp_keras_finding *found = &findings->items[i];
            if (found->is_error != (pass == 0) || seen++ != index) continue;
            return (tpucl_finding){found->is_error ? "error" : "note",
                                   *found->kind ? found->kind : "import", found->layer, found->what,
                                   found->remedy};
        }
    return (tpucl_finding){NULL, NULL, NULL, NULL, NULL};
}

const char *tpucl_import_config(const tpucl_import *import)
{
    return import ? import->import->config : NULL;
}

tpucl_status tpucl_import_save(const tpucl_import *import, const char *folder)
{
    TP_API_NEED(import);
    TP_API_NEED(folder);
    return tp_keras_import_save(import->import, folder);
}

static void write_layer(tp_json_writer *writer, const tpucl_import_layer *layer)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", layer->name);
    tp_json_put_string(writer, "type", layer->type);
    tp_json_key(writer, "output");
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < layer->output.rank; i++)
        tp_json_write_int(writer, layer->output.dims[i]);
    tp_json_end_array(writer);
    tp_json_put_int(writer, "params", layer->params);
    tp_json_put_string(writer, "source", *layer->source ? layer->source : NULL);
    tp_json_end_object(writer);
}

tpucl_status tpucl_import_json(const tpucl_import *import, char **out_text)
{
    TP_API_NEED(import);
    TP_API_NEED(out_text);
    const tpucl_import_summary *summary = &import->summary;
    tp_json_writer writer = {0};
    tpucl_import_layer layer;
    tpucl_finding finding;
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_put_string(&writer, "name", summary->name);
    tp_json_put_string(&writer, "keras_version", summary->keras_version);
    tp_json_put_string(&writer, "precision", summary->precision);
    tp_json_put_int(&writer, "weights", summary->weights);
    tp_json_put_int(&writer, "params", summary->params);
    tp_json_put_int(&writer, "errors", summary->errors);
    tp_json_put_int(&writer, "notes", summary->notes);
    tp_json_key(&writer, "layers");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; (layer = tpucl_import_layer_at(import, i)).name; i++)
        write_layer(&writer, &layer);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "findings");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; (finding = tpucl_import_finding(import, i)).text; i++)
        tp_api_write_finding(&writer, &finding);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

tpucl_status tpucl_export(const char *config_file, const char *params_file, const char *path)
{
    TP_API_NEED(config_file);
    TP_API_NEED(params_file);
    TP_API_NEED(path);
    return tp_keras_export_run(config_file, params_file, path);
}
