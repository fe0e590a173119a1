/* SPDX-License-Identifier: Apache-2.0
 * One graph on one device against the reference interpreter. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "compile/compile.h"
#include "core/alloc.h"
#include "exec/executor.h"
#include "num/bf16.h"
#include "num/philox.h"
#include "reference/reference.h"
#include "verify/check.h"

enum { INPUT_STREAM = 0x766572, MAX_SPECIALS = 12 };

typedef struct bench {
    const tp_graph *graph;
    const tp_check_graph_options *options;
    tp_core_map map; /* of the one device, which stays the caller's */
    tp_program *program;
    tp_executor *executor;
    tp_loaded *loaded;
    tp_reference *reference;
    tp_arena *arena;
    void **inputs; /* [cores * input_count] */
} bench;

static float ordinary(uint32_t word)
{
    float magnitude = (float)(1u << (word >> 29)) * 0.0625f; /* 2^-4 .. 2^3 */
    float mantissa = 1.0f + (float)(word & 0xffff) * 0x1p-16f;
    return word & 0x10000 ? -magnitude * mantissa : magnitude * mantissa;
}

static float with_specials(uint32_t word)
{
    const float specials[MAX_SPECIALS] = {NAN,     INFINITY, -INFINITY, 0.0f,   -0.0f,   1e-40f,
                                          -3e-39f, 1e30f,    -2e38f,    1e-30f, -1e-37f, 88.7f};
    uint32_t pick = (word >> 17) % 37;
    return pick < MAX_SPECIALS ? specials[pick] : ordinary(word);
}

static void fill_input(const bench *b, int32_t core, int32_t index, int32_t step)
{
    const tp_graph_input *input = &b->graph->inputs[index];
    const tp_node *node = tp_graph_node(b->graph, input->node);
    int64_t elems = tp_shape_elems(&node->shape);
    void *data = b->inputs[core * b->graph->input_count + index];
    tp_random_stream stream = tp_random_stream_make((uint32_t)b->options->seed, (uint32_t)index,
                                                    INPUT_STREAM, (uint32_t)core, (uint32_t)step);
    bool is_weight = strcmp(input->name, "weight") == 0;
    bool is_denominator = strcmp(input->name, "denominator") == 0;
    for (int64_t i = 0; i < elems; i++) {
        uint32_t word = tp_random_bits(stream, (uint32_t)(i / 4), (uint32_t)(i % 4));
        switch (node->dtype) {
        case TP_F32:
            ((float *)data)[i] = is_weight                   ? (float)(word % 4 != 0)
                                 : is_denominator            ? (float)(b->options->cores * 3)
                                 : b->options->with_specials ? with_specials(word)
                                                             : ordinary(word);
            break;
        case TP_BF16:
            ((tp_bf16 *)data)[i] = tp_bf16_from_f32(ordinary(word));
            break;
        case TP_S32:
        case TP_U32:
            ((int32_t *)data)[i] = (int32_t)(word % 10);
            break;
        case TP_PRED:
            ((uint8_t *)data)[i] = word & 1;
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)word;
        }
    }
}

static tpucl_status make_inputs(bench *b)
{
    size_t count = (size_t)b->options->cores * (size_t)b->graph->input_count;
    b->inputs = TP_ARENA_NEW_ARRAY(b->arena, void *, count + 1);
    if (!b->inputs) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const tp_node *node =
            tp_graph_node(b->graph, b->graph->inputs[i % (size_t)b->graph->input_count].node);
        b->inputs[i] =
            tp_arena_alloc(b->arena, (size_t)tp_shape_bytes(&node->shape, node->dtype) + 1);
        if (!b->inputs[i]) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

static int32_t find_input(const tp_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->input_count; i++)
        if (strcmp(graph->inputs[i].name, name) == 0) return i;
    return -1;
}

static tpucl_status submit(bench *b, int32_t step, uint64_t *out_ticket)
{
    tp_feed *feed = NULL;
    TP_TRY(tp_loaded_acquire(b->loaded, &feed));
    for (int32_t core = 0; core < b->options->cores; core++)
        for (int32_t i = 0; i < b->program->input_count; i++) {
            const tp_program_buffer *buffer = &b->program->buffers[b->program->inputs[i].buffer];
            int32_t index = find_input(b->graph, b->program->inputs[i].name);
            if (index < 0)
                return TP_FAIL(TPUCL_INTERNAL, "the program has an input '%s', the graph has not",
                               b->program->inputs[i].name);
            memcpy((char *)tp_feed_record(feed, core) + buffer->offset_bytes,
                   b->inputs[core * b->graph->input_count + index], buffer->bytes);
        }
    return tp_loaded_submit(b->loaded, feed, (uint32_t)step, out_ticket);
}

/* Index of the first element with other bits (NaNs are equal), or -1. */
static int64_t first_difference(tp_dtype dtype, const void *expected, const void *found,
                                int64_t elems)
{
    size_t size = tp_dtype_size(dtype);
    for (int64_t i = 0; i < elems; i++) {
        const char *e = (const char *)expected + (size_t)i * size;
        const char *f = (const char *)found + (size_t)i * size;
        if (memcmp(e, f, size) == 0) continue;
        if (dtype == TP_F32) {
            float a, b;
            memcpy(&a, e, 4);
            memcpy(&b, f, 4);
            if (isnan(a) && isnan(b)) continue;
        }
        if (dtype == TP_BF16 && isnan(tp_bf16_to_f32(*(const tp_bf16 *)(const void *)e)) &&
            isnan(tp_bf16_to_f32(*(const tp_bf16 *)(const void *)f)))
            continue;
        return i;
    }
    return -1;
}

static bool matches(const tp_host_tensor *expected, const void *found, const char *what,
                    const char *name, int32_t core, int32_t step, tp_check_outcome *out)
{
    int64_t elems = tp_shape_elems(&expected->shape);
    int64_t at = first_difference(expected->dtype, expected->data, found, elems);
    if (at < 0) return true;
    size_t size = tp_dtype_size(expected->dtype);
    uint32_t wanted = 0, got = 0;
    char shape[TP_SHAPE_TEXT_MAX];
    memcpy(&wanted, (const char *)expected->data + (size_t)at * size, size);
    memcpy(&got, (const char *)found + (size_t)at * size, size);
    tp_shape_format(&expected->shape, shape, sizeof shape);
    snprintf(out->reason, sizeof out->reason,
             "%s '%s' %s%s element %lld of core %d after step %d: expected bits %08x, found %08x",
             what, name, tp_dtype_name(expected->dtype), shape, (long long)at, core, step, wanted,
             got);
    return false;
}

static int32_t find_output(const tp_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->output_count; i++)
        if (strcmp(graph->outputs[i].name, name) == 0) return i;
    return -1;
}

static tpucl_status compare_step(bench *b, int32_t step, uint64_t ticket, bool *out_is_equal,
                                 tp_check_outcome *out)
{
    const void *record = NULL;
    *out_is_equal = true;
    if (b->program->result_count) TP_TRY(tp_loaded_result(b->loaded, ticket, 0, &record));
    for (int32_t i = 0; *out_is_equal && i < b->program->result_count; i++) {
        const tp_program_port *port = &b->program->results[i];
        *out_is_equal =
            matches(tp_reference_output(b->reference, 0, find_output(b->graph, port->name)),
                    (const char *)record + b->program->buffers[port->buffer].offset_bytes, "output",
                    port->name, 0, step, out);
    }
    if (!b->program->output_count) return TPUCL_OK;
    char *outputs = tp_arena_alloc(b->arena, b->program->output_bytes);
    if (!outputs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t core = 0; core < b->options->cores; core++) {
        TP_TRY(tp_loaded_output(b->loaded, ticket, core, outputs));
        for (int32_t i = 0; *out_is_equal && i < b->program->output_count; i++) {
            const tp_program_port *port = &b->program->outputs[i];
            *out_is_equal =
                matches(tp_reference_output(b->reference, core, find_output(b->graph, port->name)),
                        outputs + b->program->buffers[port->buffer].offset_bytes, "output",
                        port->name, core, step, out);
        }
    }
    return TPUCL_OK;
}

static tpucl_status compare_variables(bench *b, bool *out_is_equal, tp_check_outcome *out)
{
    tp_variables *variables = tp_executor_variables(b->executor);
    for (int32_t i = 0; i < b->graph->variable_count; i++) {
        const char *name = b->graph->variables[i].name;
        int32_t index = tp_variables_find(variables, name);
        if (index < 0) continue; /* nothing reads or updates it */
        void *found = tp_arena_alloc(b->arena, tp_variables_info(variables, index)->bytes);
        if (!found) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_variables_read(variables, index, 0, found));
        *out_is_equal = matches(tp_reference_variable(b->reference, 0, i), found, "variable", name,
                                0, b->options->steps - 1, out);
        if (!*out_is_equal) return TPUCL_OK;
    }
    return TPUCL_OK;
}

static tpucl_status run_steps(bench *b, tp_check_outcome *out)
{
    bool is_equal = true;
    for (int32_t step = 0; step < b->options->steps; step++) {
        uint64_t ticket = 0;
        for (int32_t core = 0; core < b->options->cores; core++)
            for (int32_t i = 0; i < b->graph->input_count; i++)
                fill_input(b, core, i, step);
        TP_TRY(tp_reference_step(b->reference, (const void *const *)b->inputs, (uint32_t)step));
        TP_TRY(submit(b, step, &ticket));
        TP_TRY(compare_step(b, step, ticket, &is_equal, out));
        if (!is_equal) return TPUCL_OK;
    }
    TP_TRY(compare_variables(b, &is_equal, out));
    if (is_equal) out->status = TP_CHECK_PASSED;
    return TPUCL_OK;
}

static tpucl_status load(bench *b, tp_device *device)
{
    const tp_compile_options compile = {.caps = tp_device_get_caps(device),
                                        .allow = b->options->allow,
                                        .cores = b->options->cores,
                                        .name = "verify"};
    const tp_executor_options executor = {.seed = b->options->seed,
                                          .wave_cores = b->options->wave_cores};
    TP_TRY(tp_compile(b->graph, &compile, &b->program));
    TP_TRY(tp_executor_create(&b->map, &executor, &b->executor));
    return tp_executor_load(b->executor, (const tp_program *const *)&b->program, NULL, NULL,
                            &b->loaded);
}

static tpucl_status prepare(bench *b, tp_device *device)
{
    const tp_reference_options reference = {.cores = b->options->cores, .seed = b->options->seed};
    b->map = (tp_core_map){.device_count = 1, .core_count = b->options->cores};
    b->map.devices = TP_ARENA_NEW(b->arena, tp_device *);
    b->map.owner = TP_ARENA_NEW_ARRAY(b->arena, int32_t, (size_t)b->options->cores);
    if (!b->map.devices || !b->map.owner) return TPUCL_OUT_OF_MEMORY;
    b->map.devices[0] = device;
    TP_TRY(make_inputs(b));
    return tp_reference_create(b->graph, &reference, &b->reference);
}

tpucl_status tp_check_graph(tp_device *device, const tp_graph *graph,
                            const tp_check_graph_options *options, tp_check_outcome *out_outcome)
{
    bench b = {.graph = graph, .options = options};
    *out_outcome = (tp_check_outcome){.status = TP_CHECK_FAILED};
    TP_TRY(tp_arena_create(0, &b.arena));
    tpucl_status status = prepare(&b, device);
    if (status == TPUCL_OK) {
        tpucl_status outcome = load(&b, device);
        if (outcome == TPUCL_OK) outcome = run_steps(&b, out_outcome);
        if (outcome == TPUCL_OUT_OF_MEMORY) status = outcome;
        out_outcome->is_temporary = outcome == TPUCL_OUT_OF_DEVICE_MEMORY;
        if (outcome != TPUCL_OK) /* the device's failure is the outcome, not ours */
            snprintf(out_outcome->reason, sizeof out_outcome->reason, "%.380s",
                     tpucl_last_error()->message);
    }
    tp_executor_unload(b.loaded);
    tp_executor_destroy(b.executor);
    tp_program_destroy(b.program);
    tp_reference_destroy(b.reference);
    tp_arena_destroy(b.arena);
    return status;
}
