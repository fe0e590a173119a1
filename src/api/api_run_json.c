/* SPDX-License-Identifier: Apache-2.0
 * Results of runs as JSON; docs/json.md describes them and is checked by tests/cli. Numbers that
 * do not exist (an accuracy that nobody asked for) are null. */
#include <math.h>
#include "api/run_internal.h"

static void put_if(tp_json_writer *writer, const char *key, double value)
{
    tp_json_key(writer, key);
    if (value < 0)
        tp_json_write_null(writer);
    else
        tp_json_write_double(writer, value);
}

static void put_value(tp_json_writer *writer, const char *key, double value)
{
    tp_json_key(writer, key);
    if (isfinite(value))
        tp_json_write_double(writer, value);
    else
        tp_json_write_null(writer);
}

/* By name; in "outputs", by output, where a model has several. */
static void put_metrics(tp_json_writer *writer, const tp_session *session, const double *values)
{
    const char *before = NULL;
    for (int32_t i = 0; i < tp_session_metric_count(session); i++) {
        const char *output = tp_session_metric_output(session, i);
        if (output && !before) {
            tp_json_key(writer, "outputs");
            tp_json_begin_object(writer);
        }
        if (output != before) {
            if (before) tp_json_end_object(writer);
            tp_json_key(writer, output);
            tp_json_begin_object(writer);
        }
        before = output;
        put_value(writer, tp_session_metric_key(session, i), values[i]);
    }
    if (!before) return;
    tp_json_end_object(writer);
    tp_json_end_object(writer);
}

static void write_epoch(tp_json_writer *writer, const tpucl_epoch *epoch, const tp_session *session)
{
    tp_json_begin_object(writer);
    tp_json_put_int(writer, "epoch", epoch->epoch);
    tp_json_put_int(writer, "steps", epoch->steps);
    tp_json_put_double(writer, "seconds", epoch->seconds);
    tp_json_put_double(writer, "examples_per_second", epoch->examples_per_second);
    tp_json_key(writer, "train");
    tp_json_begin_object(writer);
    tp_json_put_double(writer, "loss", epoch->train_loss);
    put_if(writer, "accuracy", epoch->train_accuracy);
    put_metrics(writer, session, epoch->train_metrics);
    tp_json_end_object(writer);
    tp_json_key(writer, "eval");
    if (!epoch->has_eval) {
        tp_json_write_null(writer);
    } else {
        tp_json_begin_object(writer);
        tp_json_put_double(writer, "loss", epoch->eval_loss);
        put_if(writer, "accuracy", epoch->eval_accuracy);
        put_metrics(writer, session, epoch->eval_metrics);
        tp_json_put_double(writer, "seconds", epoch->eval_seconds);
        tp_json_end_object(writer);
    }
    tp_json_end_object(writer);
}

void tp_api_write_run(tp_json_writer *writer, const tpucl_run *run)
{
    const tpucl_run_info *info = &run->info;
    tp_json_put_string(writer, "version", tpucl_version_string());
    tp_json_put_int(writer, "contract", TPUCL_CONTRACT_VERSION);
    tp_json_put_string(writer, "name", info->name);
    tp_json_put_string(writer, "config_sha256", info->config_sha256);
    tp_json_put_string(writer, "topology", info->topology);
    tp_json_put_string(writer, "precision", info->precision);
    tp_json_put_int(writer, "cores", info->cores);
    tp_json_put_int(writer, "per_core_batch", info->per_core_batch);
    tp_json_put_int(writer, "global_batch", info->global_batch);
    tp_json_key(writer, "parameters");
    tp_json_write_uint(writer, info->parameter_count);
    tp_json_key(writer, "devices");
    tp_json_begin_array(writer);
    for (int32_t i = 0; i < info->devices; i++) {
        tpucl_device_info device;
        if (tpucl_run_device_info(run, i, &device) == TPUCL_OK)
            tp_api_write_device(writer, &device);
    }
    tp_json_end_array(writer);
}

static void put_bytes(tp_json_writer *writer, const char *key, uint64_t bytes)
{
    tp_json_key(writer, key);
    tp_json_write_uint(writer, bytes);
}

static void write_memory(tp_json_writer *writer, const tpucl_run *run)
{
    tp_session_info info;
    tp_session_get_info(run->session, &info);
    tp_json_key(writer, "memory");
    tp_json_begin_object(writer);
    put_bytes(writer, "peak_core_bytes", run->info.peak_core_bytes);
    put_bytes(writer, "variable_bytes", run->info.variable_bytes);
    put_bytes(writer, "core_bytes", info.memory.held_core_bytes);
    put_bytes(writer, "device_bytes", info.device_bytes);
    tp_json_put_int(writer, "wave_cores", info.memory.wave_cores);
    tp_json_end_object(writer);
}

static void write_startup(tp_json_writer *writer, const tp_session *session)
{
    tp_session_info info;
    tp_session_get_info(session, &info);
    tp_json_key(writer, "startup");
    tp_json_begin_object(writer);
    tp_json_put_double(writer, "data", info.startup.data);
    tp_json_put_double(writer, "model", info.startup.model);
    tp_json_put_double(writer, "devices", info.startup.devices);
    tp_json_put_double(writer, "verify", info.startup.verify);
    tp_json_put_double(writer, "compile", info.startup.compile);
    tp_json_put_double(writer, "memory", info.startup.memory);
    tp_json_put_double(writer, "kernels", info.startup.kernels);
    tp_json_put_double(writer, "first_step", info.startup.first_step);
    tp_json_put_int(writer, "programs_compiled", info.startup.compiled);
    tp_json_put_int(writer, "programs_from_disk", info.startup.from_disk);
    tp_json_end_object(writer);
}

static void write_input(tp_json_writer *writer, tp_session *session)
{
    const tp_pipeline_stats *stats = tp_session_input_stats(session);
    tp_json_key(writer, "input");
    tp_json_begin_object(writer);
    tp_json_put_int(writer, "threads", stats->threads);
    tp_json_put_int(writer, "prefetch", stats->prefetch);
    tp_json_put_bool(writer, "auto", stats->is_auto);
    tp_json_put_double(writer, "seconds", stats->seconds);
    tp_json_put_double(writer, "waited", stats->waited);
    tp_json_put_double(writer, "waited_link", stats->waited_link);
    tp_json_put_double(writer, "read_seconds", stats->read_seconds);
    tp_json_put_int(writer, "left_out", stats->missing);
    tp_json_end_object(writer);
}

tpucl_status tpucl_run_result_json(tpucl_run *run, char **out_text)
{
    TP_API_NEED(run);
    TP_API_NEED(out_text);
    const tpucl_run_result *result = &run->result;
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_api_write_run(&writer, run);
    tp_json_put_int(&writer, "steps", result->steps);
    tp_json_put_bool(&writer, "interrupted", result->interrupted);
    tp_json_key(&writer, "epochs");
    tp_json_begin_array(&writer);
    for (int32_t i = 0; i < result->epoch_count; i++)
        write_epoch(&writer, &result->epochs[i], run->session);
    tp_json_end_array(&writer);
    tp_json_put_string(&writer, "params_sha256", result->params_sha256);
    tp_json_put_double(&writer, "first_step_seconds", result->first_step_seconds);
    tp_json_put_double(&writer, "build_seconds", result->build_seconds);
    write_startup(&writer, run->session);
    write_input(&writer, run->session);
    write_memory(&writer, run);
    tp_json_key(&writer, "breakdown");
    tp_json_begin_object(&writer);
    tp_json_put_double(&writer, "input", result->breakdown.input);
    tp_json_put_double(&writer, "compute", result->breakdown.compute);
    tp_json_put_double(&writer, "memory", result->breakdown.memory);
    tp_json_put_double(&writer, "idle", result->breakdown.idle);
    tp_json_put_string(&writer, "verdict", result->breakdown.verdict);
    tp_json_end_object(&writer);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}

tpucl_status tpucl_run_evaluation_json(tpucl_run *run, const char *part, const tpucl_epoch *result,
                                       char **out_text)
{
    TP_API_NEED(run);
    TP_API_NEED(result);
    TP_API_NEED(out_text);
    char digest[65];
    part = part ? part : "test";
    TP_TRY(tpucl_run_params_sha256(run, digest));
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_api_write_run(&writer, run);
    tp_json_put_string(&writer, "part", part);
    tp_json_put_int(&writer, "examples",
                    !strcmp(part, "train") ? run->info.train_examples : run->info.test_examples);
    tp_json_put_double(&writer, "loss", result->eval_loss);
    put_if(&writer, "accuracy", result->eval_accuracy);
    put_metrics(&writer, run->session, result->eval_metrics);
    tp_json_put_double(&writer, "seconds", result->eval_seconds);
    tp_json_put_string(&writer, "params_sha256", digest);
    tp_json_end_object(&writer);
    TP_TRY(tp_json_writer_finish(&writer, out_text));
    return TPUCL_OK;
}
