/* SPDX-License-Identifier: Apache-2.0
 * Reading a plan: rows, and all of it as JSON.
 */
#include "api/plan_internal.h"

static const tp_plan_entry *entry_at(const tpucl_plan_report *report, int32_t row)
{
    if (!report || row < 0 || (size_t)row >= report->entries.count) return NULL;
    return &report->entries.items[row];
}

static const tp_memory_plan *memory_at(const tpucl_plan_report *report, int32_t row)
{
    const tp_plan_entry *entry = entry_at(report, row);
    return entry ? entry->plan.memory : NULL;
}

tpucl_plan_row tpucl_plan_report_row(const tpucl_plan_report *report, int32_t row)
{
    const tp_plan_entry *entry = entry_at(report, row);
    return entry ? entry->row : (tpucl_plan_row){.topology = NULL};
}

tpucl_plan_kind tpucl_plan_report_kind(const tpucl_plan_report *report, int32_t row, int32_t index)
{
    const tp_memory_plan *memory = memory_at(report, row);
    if (!memory || index < 0 || index >= TP_MEMORY_KIND_COUNT) return (tpucl_plan_kind){NULL};
    return (tpucl_plan_kind){tp_memory_kind_key((tp_memory_kind)index),
                             tp_memory_kind_text((tp_memory_kind)index), memory->here.bytes[index],
                             memory->tpu.bytes[index]};
}

tpucl_plan_tensor tpucl_plan_report_tensor(const tpucl_plan_report *report, int32_t row,
                                           int32_t index)
{
    const tp_memory_plan *memory = memory_at(report, row);
    if (!memory || index < 0 || index >= memory->largest_count) return (tpucl_plan_tensor){NULL};
    const tp_memory_tensor *tensor = &memory->largest[index];
    return (tpucl_plan_tensor){.name = tensor->name,
                               .layer = tensor->layer,
                               .type = tensor->type,
                               .kind = tp_memory_kind_key(tensor->kind),
                               .note = tensor->note,
                               .here_bytes = tensor->bytes,
                               .tpu_bytes = tensor->tpu,
                               .padding = tensor->padding};
}

const char *tpucl_plan_report_warning(const tpucl_plan_report *report, int32_t row, int32_t index)
{
    const tp_memory_plan *memory = memory_at(report, row);
    return memory && index >= 0 && index < memory->warning_count ? memory->warnings[index] : NULL;
}

tpucl_plan_layer tpucl_plan_report_layer(const tpucl_plan_report *report, int32_t row,
                                         int32_t index)
{
    const tp_plan_entry *entry = entry_at(report, row);
    if (!entry || !entry->projection || index < 0 ||
        (size_t)index >= entry->projection->layers.count)
        return (tpucl_plan_layer){NULL, NULL, 0, 0};
    const tp_projected_layer *layer = &entry->projection->layers.items[index];
    return (tpucl_plan_layer){layer->name, tp_limiter_name(layer->limiter), layer->seconds,
                              layer->spent_flops > 0 ? layer->useful_flops / layer->spent_flops
                                                     : 1};
}

const char *tpucl_plan_report_note(const tpucl_plan_report *report, int32_t index)
{
    if (!report || index < 0 || (size_t)index >= report->notes.count) return NULL;
    return report->notes.items[index];
}

/* ---- JSON ---- */

static void put_bytes(tp_json_writer *writer, const char *key, uint64_t bytes)
{
    tp_json_key(writer, key);
    tp_json_write_uint(writer, bytes);
}

/* What nobody knows is null. */
static void put_known(tp_json_writer *writer, const char *key, uint64_t bytes)
{
    if (bytes)
        put_bytes(writer, key, bytes);
    else
        tp_json_put_string(writer, key, NULL);
}

static void write_view(tp_json_writer *writer, const char *key, const tp_memory_view *view)
{
    tp_json_key(writer, key);
    tp_json_begin_object(writer);
    put_bytes(writer, "bytes", view->total);
    tp_json_put_string(writer, "peak_at", view->peak_at);
    tp_json_key(writer, "kinds");
    tp_json_begin_object(writer);
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++)
        put_bytes(writer, tp_memory_kind_key((tp_memory_kind)kind), view->bytes[kind]);
    tp_json_end_object(writer);
    tp_json_end_object(writer);
}

static void write_tensors(tp_json_writer *writer, const tp_memory_plan *memory)
{
    tp_json_key(writer, "largest");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < memory->largest_count; i++) {
        const tp_memory_tensor *tensor = &memory->largest[i];
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", tensor->name);
        tp_json_put_string(writer, "layer", tensor->layer);
        tp_json_put_string(writer, "type", tensor->type);
        tp_json_put_string(writer, "kind", tp_memory_kind_key(tensor->kind));
        put_bytes(writer, "here_bytes", tensor->bytes);
        put_bytes(writer, "tpu_bytes", tensor->tpu);
        tp_json_put_double(writer, "padding", tensor->padding);
        tp_json_put_string(writer, "tiles", tensor->note);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
    tp_json_key(writer, "warnings");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < memory->warning_count; i++)
        tp_json_write_string(writer, memory->warnings[i]);
    tp_json_end_array(writer);
}

static void write_largest(tp_json_writer *writer, const tpucl_plan_row *row)
{
    tp_json_key(writer, "largest_batch");
    tp_json_begin_object(writer);
    put_known(writer, "float32", (uint64_t)row->largest_float32);
    put_known(writer, "bfloat16", (uint64_t)row->largest_bfloat16);
    tp_json_put_int(writer, "step_float32", row->step_float32);
    tp_json_put_int(writer, "step_bfloat16", row->step_bfloat16);
    tp_json_end_object(writer);
}

static void write_device(tp_json_writer *writer, const tp_plan_entry *entry)
{
    const tpucl_plan_row *row = &entry->row;
    tp_json_key(writer, "device");
    if (row->device) {
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", row->device);
        tp_json_put_int(writer, "wave_cores", row->wave_cores);
        put_bytes(writer, "bytes", row->device_bytes);
        put_bytes(writer, "evaluation_bytes", entry->plan.evaluate_bytes);
        put_bytes(writer, "least_bytes", row->device_least_bytes);
        put_bytes(writer, "limit_bytes", row->device_limit_bytes);
        tp_json_put_bool(writer, "fits", entry->plan.fits_device);
        tp_json_end_object(writer);
    } else {
        tp_json_write_null(writer);
    }
    tp_json_key(writer, "host");
    tp_json_begin_object(writer);
    put_bytes(writer, "bytes", row->host_bytes);
    put_known(writer, "limit_bytes", row->host_limit_bytes);
    tp_json_end_object(writer);
}

static void put_if(tp_json_writer *writer, const char *key, double value)
{
    if (value > 0)
        tp_json_put_double(writer, key, value);
    else
        tp_json_put_string(writer, key, NULL);
}

static void write_layers(tp_json_writer *writer, const tp_projection *projection)
{
    tp_json_key(writer, "layers");
    tp_json_begin_array(writer);
    for (size_t i = 0; i < projection->layers.count; i++) {
        const tp_projected_layer *layer = &projection->layers.items[i];
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", layer->name);
        tp_json_put_double(writer, "seconds", layer->seconds);
        tp_json_put_string(writer, "limiter", tp_limiter_name(layer->limiter));
        put_if(writer, "mxu_share",
               layer->spent_flops > 0 ? layer->useful_flops / layer->spent_flops : 0);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
}

static void write_projection(tp_json_writer *writer, const tp_plan_entry *entry)
{
    const tpucl_plan_row *row = &entry->row;
    tp_json_key(writer, "projected");
    if (!entry->projection) {
        tp_json_write_null(writer);
        return;
    }
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "kind", "projected");
    tp_json_put_string(writer, "class", row->machine_class);
    tp_json_put_double(writer, "efficiency", tp_machine_efficiency(entry->projection->machine));
    tp_json_put_double(writer, "step_seconds", row->step_seconds);
    tp_json_put_double(writer, "step_low_seconds", row->step_low_seconds);
    tp_json_put_double(writer, "step_high_seconds", row->step_high_seconds);
    tp_json_put_double(writer, "device_seconds", row->device_seconds);
    tp_json_put_double(writer, "feed_seconds", row->feed_seconds);
    tp_json_put_double(writer, "all_reduce_seconds", row->sum_seconds);
    tp_json_put_double(writer, "examples_per_second", row->examples_per_second);
    put_if(writer, "epoch_seconds", row->epoch_seconds);
    put_if(writer, "epoch_low_seconds", row->epoch_low_seconds);
    put_if(writer, "epoch_high_seconds", row->epoch_high_seconds);
    put_if(writer, "epoch_cost", row->epoch_cost);
    tp_json_put_string(writer, "limiter", row->limiter);
    tp_json_put_double(writer, "mxu_share", row->mxu_share);
    tp_json_put_double(writer, "peak_share", row->peak_share);
    put_known(writer, "ridge_batch", (uint64_t)row->ridge_batch);
    tp_json_put_bool(writer, "recurrent", row->recurrent);
    write_layers(writer, entry->projection);
    tp_json_end_object(writer);
}

static void write_row(tp_json_writer *writer, const tp_plan_entry *entry)
{
    const tpucl_plan_row *row = &entry->row;
    const tp_memory_plan *memory = entry->plan.memory;
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "topology", row->topology);
    tp_json_put_string(writer, "precision", row->precision);
    tp_json_put_int(writer, "cores", row->cores);
    tp_json_put_int(writer, "micro_batches", row->micro_batches);
    tp_json_put_int(writer, "per_core_batch", row->per_core_batch);
    tp_json_put_int(writer, "global_batch", row->global_batch);
    put_known(writer, "capacity_bytes", row->capacity_bytes);
    tp_json_put_bool(writer, "fits", row->fits);
    tp_json_put_string(writer, "refusal", row->refusal);
    put_known(writer, "core_bytes", row->core_bytes);
    tp_json_put_double(writer, "gap_share", row->gap_share);
    if (memory) {
        write_view(writer, "here", &memory->here);
        write_view(writer, "tpu", &memory->tpu);
        write_tensors(writer, memory);
    }
    write_largest(writer, row);
    write_device(writer, entry);
    write_projection(writer, entry);
    tp_json_end_object(writer);
}

tpucl_status tpucl_plan_report_json(const tpucl_plan_report *report, char **out_text)
{
    TP_API_NEED(report);
    TP_API_NEED(out_text);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "version", tpucl_version_string());
    tp_json_key(&writer, "notes");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < report->notes.count; i++)
        tp_json_write_string(&writer, report->notes.items[i]);
    tp_json_end_array(&writer);
    tp_json_key(&writer, "topologies");
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < report->entries.count; i++)
        write_row(&writer, &report->entries.items[i]);
    tp_json_end_array(&writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}
