/* SPDX-License-Identifier: Apache-2.0
 * The import as a whole: file, mapping, model, weights, run configuration.
 */
#include "keras/import.h"

#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "core/json_write.h"
#include "core/problems.h"
#include "io/keras_file.h"
#include "keras/map_internal.h"
#include "topo/config.h"

/* ---- the run configuration ---- */

/* Sections that compile_config gave; a section that the configuration's reader does not take is left out. */
static const char *const sections[] = {"loss", "optimizer", "metrics", "losses"};
enum { SECTION_COUNT = sizeof sections / sizeof *sections };

static void write_dims(tp_json_writer *writer, const char *key, const tp_shape *shape)
{
    tp_json_key(writer, key);
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < shape->rank; i++)
        tp_json_write_int(writer, shape->dims[i]);
    tp_json_end_array(writer);
}

/* `used`: which of the sections are taken from `compiled`. With `only_for_checking` the keys that a configuration
 * must have are filled in. */
static tpucl_status write_config(const tp_keras_model *mapped, const tp_json *model,
                                 const tp_json *compiled, const bool used[SECTION_COUNT],
                                 bool only_for_checking, char **out_text)
{
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "name", mapped->name);
    tp_json_key(&writer, "model");
    tp_json_write_value(&writer, model);
    if (mapped->input_count == 1 && !mapped->inputs[0].is_integer && mapped->inputs[0].shape.rank)
        write_dims(&writer, "input_shape", &mapped->inputs[0].shape);
    for (int i = 0; i < SECTION_COUNT; i++) {
        const tp_json *value = tp_keras_member(compiled, sections[i]);
        if (value && used[i]) {
            tp_json_key(&writer, sections[i]);
            tp_json_write_value(&writer, value);
        } else if (only_for_checking && i < 2) {
            tp_json_put_string(&writer, sections[i], i == 0 ? "mean_squared_error" : "SGD");
        }
    }
    tp_json_put_string(&writer, "precision", mapped->policy);
    tp_json_end_object(&writer);
    const tpucl_status status = tp_json_writer_finish(&writer, out_text);
    tp_json_writer_deinit(&writer);
    return status;
}

/* Whether the reader of configurations takes it together with those taken before; only memory is a failure. */
static tpucl_status check_section(tp_keras_import *import, const tp_json *model,
                                  const tp_json *compiled, int section, bool used[SECTION_COUNT])
{
    char *text;
    tp_config *config = NULL;
    used[section] = true;
    TP_TRY(write_config(&import->mapped, model, compiled, used, true, &text));
    const tpucl_status status =
        tp_config_parse(text, strlen(text), sections[section], NULL, 0, &config);
    tp_free(text);
    tp_config_destroy(config);
    used[section] = status == TPUCL_OK;
    if (status == TPUCL_OK || status == TPUCL_OUT_OF_MEMORY) return status;
    return tp_keras_find(import->arena, &import->mapped.findings, TP_KERAS_LEFT_OUT, "", "",
                         "write it into the run configuration as docs/config.md says",
                         "left out: %s of compile(): %.300s", sections[section],
                         tpucl_last_error()->message);
}

static tpucl_status make_config(tp_keras_import *import, const tp_json *model,
                                const tp_json *compile)
{
    const char *compiled_text;
    tp_json_document *compiled = NULL;
    bool used[SECTION_COUNT] = {false};
    char *text = NULL;
    TP_TRY(tp_keras_map_compile(compile, import->arena, &import->mapped.findings, &compiled_text));
    TP_TRY(tp_json_parse(compiled_text, strlen(compiled_text), "compile_config", &compiled));
    const tp_json *root = tp_json_root(compiled);
    tpucl_status status = TPUCL_OK;
    for (int i = 0; i < SECTION_COUNT && status == TPUCL_OK; i++)
        if (tp_keras_member(root, sections[i]))
            status = check_section(import, model, root, i, used);
    if (status == TPUCL_OK) status = write_config(&import->mapped, model, root, used, false, &text);
    tp_json_destroy(compiled);
    TP_TRY(status);
    import->config = tp_arena_strdup(import->arena, text);
    tp_free(text);
    if (!import->config) return TPUCL_OUT_OF_MEMORY;
    import->has_loss = used[0];
    import->has_optimizer = used[1];
    for (int i = 0; i < 2; i++)
        if (!used[i])
            TP_TRY(tp_keras_find(import->arena, &import->mapped.findings, TP_KERAS_LEFT_OUT, "", "",
                                 "add it before training", "the run configuration has no '%s'",
                                 sections[i]));
    return TPUCL_OK;
}

/* ---- the model ---- */

static tpucl_status make_model(tp_keras_import *import, const tp_json *model)
{
    const tp_keras_model *mapped = &import->mapped;
    tp_model_input *inputs =
        TP_ARENA_NEW_ARRAY(import->arena, tp_model_input, (size_t)mapped->input_count);
    if (!inputs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < mapped->input_count; i++)
        inputs[i] = (tp_model_input){.dtype = mapped->inputs[i].is_integer ? TP_S32 : TP_F32,
                                     .shape = mapped->inputs[i].shape,
                                     .scale = 1,
                                     .is_integer = mapped->inputs[i].is_integer,
                                     .name = mapped->inputs[i].name};
    tp_model_options options = {.precision = TP_PRECISION_F32};
    if (!tp_model_policy_find(mapped->policy, &options.policy))
        return TP_FAIL(TPUCL_INTERNAL, "policy '%s'", mapped->policy);
    return tp_model_create_many(model, inputs, mapped->input_count, &options, &import->model);
}

static const char *source_of(const tp_keras_file *file, const tp_keras_layer *layer, int64_t params)
{
    if (params == 0 || tp_keras_weight_layout(file) == TP_KERAS_NO_WEIGHTS) return "";
    return tp_keras_weight_layout(file) == TP_KERAS_NAMES ? layer->owner : layer->place;
}

static tpucl_status list_rows(tp_keras_import *import, const tp_keras_file *file)
{
    const tp_keras_model *mapped = &import->mapped;
    import->rows =
        TP_ARENA_NEW_ARRAY(import->arena, tp_keras_import_row, (size_t)mapped->layer_count + 1);
    if (!import->rows) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < mapped->layer_count; i++) {
        const tp_keras_layer *layer = &mapped->layers[i];
        tp_keras_import_row *row = &import->rows[import->row_count];
        for (int32_t k = 0; k < tp_model_row_count(import->model); k++) {
            const tp_model_row found = tp_model_row_at(import->model, k);
            if (strcmp(found.name, layer->name) != 0) continue;
            *row = (tp_keras_import_row){.name = layer->name,
                                         .kind = layer->kind,
                                         .output = found.output,
                                         .params = found.params,
                                         .source = source_of(file, layer, found.params)};
            import->row_count++;
            break;
        }
    }
    return TPUCL_OK;
}

static tpucl_status read_weights(tp_keras_import *import, tp_keras_file *file)
{
    tp_graph *graph;
    if (tp_keras_weight_layout(file) == TP_KERAS_NO_WEIGHTS)
        return tp_keras_find(import->arena, &import->mapped.findings, TP_KERAS_CHANGED, "", "",
                             "give the file with the weights, too",
                             "there are no weights: the training begins with new ones");
    TP_TRY(tp_model_build_predict(import->model, 1, &graph));
    const tpucl_status status = tp_keras_bind(file, graph, import);
    tp_graph_destroy(graph);
    return status;
}

/* ---- the whole ---- */

static bool has_errors(const tp_keras_findings *findings)
{
    for (int32_t i = 0; i < findings->count; i++)
        if (findings->items[i].is_error) return true;
    return false;
}

static tpucl_status import_mapped(tp_keras_import *import, tp_keras_file *file)
{
    tp_json_document *document;
    TP_TRY(tp_json_parse(import->mapped.json, strlen(import->mapped.json), "model", &document));
    const tp_json *model = tp_json_root(document);
    tpucl_status status = make_config(import, model, tp_keras_compile_config(file));
    if (status == TPUCL_OK) status = make_model(import, model);
    if (status == TPUCL_OK) status = list_rows(import, file);
    if (status == TPUCL_OK) status = read_weights(import, file);
    tp_json_destroy(document);
    return status;
}

static tpucl_status import_file(tp_keras_import *import, tp_keras_file *file)
{
    static const tp_keras_map_options options = {tp_keras_has_type, tp_keras_has_argument};
    if (!tp_keras_config(file))
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the file holds weights alone; give the model (.keras, .h5 or what "
                       "to_json() wrote), and this file with --weights");
    import->keras_version = tp_arena_strdup(import->arena, tp_keras_version(file));
    if (!import->keras_version) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_keras_map(tp_keras_config(file), &options, import->arena, &import->mapped));
    return import->mapped.json ? import_mapped(import, file) : TPUCL_OK;
}

/* Takes over `file`. */
static tpucl_status import_open(tp_keras_file *file, tp_keras_import **out_import)
{
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    tp_keras_import *import = TP_NEW(tp_keras_import);
    if (import) status = tp_arena_create(0, &import->arena);
    if (status == TPUCL_OK) status = import_file(import, file);
    tp_keras_close(file);
    if (status != TPUCL_OK) {
        tp_keras_import_destroy(import);
        return status;
    }
    if (has_errors(&import->mapped.findings)) import->config = NULL;
    *out_import = import;
    return TPUCL_OK;
}

tpucl_status tp_keras_import_file(const char *path, const char *weights_path,
                                  tp_keras_import **out_import)
{
    tp_keras_file *file;
    TP_TRY(tp_keras_open(path, weights_path, &file));
    const tpucl_status status = import_open(file, out_import);
    if (status != TPUCL_OK) tp_error_note("'%s'", path);
    return status;
}

tpucl_status tp_keras_import_bytes(const void *bytes, size_t length, const char *name,
                                   tp_keras_import **out_import)
{
    tp_keras_file *file;
    TP_TRY(tp_keras_open_bytes(bytes, length, name, &file));
    return import_open(file, out_import);
}

void tp_keras_import_destroy(tp_keras_import *import)
{
    if (!import) return;
    for (int32_t i = 0; i < import->tensor_count; i++)
        tp_free((void *)(uintptr_t)import->tensors[i].data);
    tp_model_destroy(import->model);
    tp_arena_destroy(import->arena);
    tp_free(import);
}

tpucl_status tp_keras_import_save(const tp_keras_import *import, const char *folder)
{
    TP_TRY(tp_keras_check_findings(&import->mapped.findings, "the model"));
    TP_TRY(tp_file_make_folders(folder));
    const char *config = tp_file_join(import->arena, folder, "run.json");
    const char *params = tp_file_join(import->arena, folder, "params.safetensors");
    if (!config || !params) return TPUCL_OUT_OF_MEMORY;
    if (import->tensor_count) {
        const char *const keys[] = {"model", "keras_version"};
        const char *const values[] = {import->mapped.name, import->keras_version};
        TP_TRY(
            tp_safetensors_write(params, import->tensors, import->tensor_count, keys, values, 2));
    }
    return tp_file_write_atomic(config, import->config, strlen(import->config));
}
