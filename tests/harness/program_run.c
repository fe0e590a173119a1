/* SPDX-License-Identifier: Apache-2.0
 * See program_run.h.
 */
#include "harness/program_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden/golden.h"
#include "harness/coverage.h"
#include "num/bf16.h"
#include "reference/reference.h"

tp_device *program_run_device(void)
{
    static tp_device *device;
    if (device) return device;
    tp_device_list *list;
    tp_device_choice choice;
    cr_assert_eq(tp_device_list_create(&list), TPUCL_OK);
    if (tp_device_list_select(list, NULL, &choice) != TPUCL_OK) {
        tp_device_list_destroy(list);
        cr_skip_test("no OpenCL device");
    }
    cr_assert_eq(tp_device_open(list, choice.index, NULL, &device), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    tp_device_list_destroy(list);
    return device;
}

static tpucl_status compile(const tp_graph *graph, const program_run_options *options,
                            tp_program **out_program)
{
    const tp_mxu_allow allow = {.forced = options->forced_variant};
    tp_device_caps caps = *tp_device_get_caps(program_run_device());
    if (options->as_gpu) {
        caps.type = TP_DEVICE_GPU;
        caps.local_memory_is_ordinary = false;
        caps.preferred_float_vector = 1;
    }
    const tp_compile_options compile_options = {.name = "test",
                                                .caps = &caps,
                                                .allow = options->forced_variant ? &allow : NULL,
                                                .cores = options->cores,
                                                .max_slab_segment_bytes =
                                                    options->max_slab_segment_bytes,
                                                .dump_folder = options->dump_folder};
    return tp_compile(graph, &compile_options, out_program);
}

tp_program *program_run_compile(const tp_graph *graph, const program_run_options *options)
{
    tp_program *program = NULL;
    cr_assert_eq(compile(graph, options, &program), TPUCL_OK, "%s", tpucl_last_error()->message);
    return program;
}

/* ---- inputs ---- */

static void fill_input(const tp_node *node, uint32_t stream, int32_t int_limit, void *data)
{
    const int64_t elems = tp_shape_elems(&node->shape);
    for (int64_t i = 0; i < elems; i++) {
        const float value = golden_value(stream, (uint32_t)i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint32_t number = (bits >> 7) % (uint32_t)int_limit;
        switch (node->dtype) {
        case TP_F32:
            ((float *)data)[i] = value;
            break;
        case TP_BF16:
            ((tp_bf16 *)data)[i] = tp_bf16_from_f32(value);
            break;
        case TP_S32:
        case TP_U32:
            ((uint32_t *)data)[i] = number;
            break;
        case TP_U8:
            ((uint8_t *)data)[i] = (uint8_t)(bits >> 5);
            break;
        default:
            ((uint8_t *)data)[i] = bits >> 9 & 1;
        }
    }
}

/* ---- comparing ---- */

static bool is_nan_element(tp_dtype dtype, const void *element)
{
    uint32_t bits = 0;
    if (dtype == TP_F32) {
        memcpy(&bits, element, 4);
        return (bits & 0x7fffffffu) > 0x7f800000u;
    }
    if (dtype != TP_BF16) return false;
    memcpy(&bits, element, 2);
    return (bits & 0x7fffu) > 0x7f80u;
}

static bool compare_tensor(const char *what, const char *name, int32_t core, int32_t step,
                           tp_dtype dtype, const tp_shape *shape, const void *found,
                           const void *expected, char *out_text, size_t text_bytes)
{
    const size_t size = tp_dtype_size(dtype);
    const int64_t elems = tp_shape_elems(shape);
    int64_t differ = 0, first = -1;
    for (int64_t i = 0; i < elems; i++) {
        const char *a = (const char *)found + (size_t)i * size;
        const char *b = (const char *)expected + (size_t)i * size;
        if (memcmp(a, b, size) == 0 || (is_nan_element(dtype, a) && is_nan_element(dtype, b)))
            continue;
        if (first < 0) first = i;
        differ++;
    }
    if (first < 0) return true;
    uint32_t a = 0, b = 0;
    memcpy(&a, (const char *)found + (size_t)first * size, size);
    memcpy(&b, (const char *)expected + (size_t)first * size, size);
    char text[TP_SHAPE_TEXT_MAX];
    tp_shape_format(shape, text, sizeof text);
    snprintf(out_text, text_bytes,
             "%s '%s' %s%s core %d step %d: %lld of %lld elements differ, first %lld: 0x%x (%g), "
             "expected 0x%x (%g)",
             what, name, tp_dtype_name(dtype), text, core, step, (long long)differ,
             (long long)elems, (long long)first, a,
             (double)tp_f32_from_bits(dtype == TP_BF16 ? a << 16 : a), b,
             (double)tp_f32_from_bits(dtype == TP_BF16 ? b << 16 : b));
    return false;
}

/* ---- running ---- */

typedef struct run_state {
    const tp_graph *graph;
    const program_run_options *options;
    int32_t cores;
    tp_program *program;
    tp_reference *reference;
    tp_executor *executor;
    tp_loaded *loaded;
    tp_core_map map;
    int32_t owner[64];
    tp_device *devices[1];
    void **inputs; /* cores * input_count */
    char *text;
    size_t text_bytes;
} run_state;

static tpucl_status start(run_state *state)
{
    const program_run_options *options = state->options;
    const tp_reference_options reference_options = {.cores = state->cores, .seed = options->seed};
    TP_TRY(tp_reference_create(state->graph, &reference_options, &state->reference));
    TP_TRY(compile(state->graph, options, &state->program));
    state->devices[0] = program_run_device();
    state->map = (tp_core_map){.devices = state->devices,
                               .device_count = 1,
                               .core_count = state->cores,
                               .owner = state->owner};
    const tp_executor_options executor_options = {.seed = options->seed,
                                                  .wave_cores = options->wave_cores};
    TP_TRY(tp_executor_create(&state->map, &executor_options, &state->executor));
    const tp_program *programs[1] = {state->program};
    return tp_executor_load(state->executor, programs, NULL, NULL, &state->loaded);
}

static const tp_program_buffer *port_buffer(const tp_program *program, const tp_program_port *ports,
                                            int32_t count, const char *name)
{
    for (int32_t i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0) return &program->buffers[ports[i].buffer];
    return NULL;
}

static void feed_inputs(run_state *state, tp_feed *feed, int32_t step)
{
    const tp_graph *graph = state->graph;
    const int32_t limit = state->options->int_limit ? state->options->int_limit : 3;
    for (int32_t core = 0; core < state->cores; core++)
        for (int32_t i = 0; i < graph->input_count; i++) {
            const tp_node *node = tp_graph_node(graph, graph->inputs[i].node);
            void *data = state->inputs[core * graph->input_count + i];
            fill_input(node,
                       state->options->seed * 1000u + (uint32_t)(step * 64 + core * 8 + i * 512),
                       limit, data);
            const tp_program_buffer *buffer =
                port_buffer(state->program, state->program->inputs, state->program->input_count,
                            graph->inputs[i].name);
            memcpy((char *)tp_feed_record(feed, core) + buffer->offset_bytes, data,
                   (size_t)buffer->bytes);
        }
}

static tpucl_status compare_outputs(run_state *state, uint64_t ticket, int32_t step,
                                    bool *out_equal)
{
    const tp_program *program = state->program;
    const void *result = NULL;
    TP_TRY(tp_loaded_result(state->loaded, ticket, 0, &result));
    char *record = malloc((size_t)program->output_bytes + 1);
    for (int32_t o = 0; o < state->graph->output_count && *out_equal; o++) {
        const char *name = state->graph->outputs[o].name;
        const tp_program_buffer *once =
            port_buffer(program, program->results, program->result_count, name);
        const tp_program_buffer *each =
            port_buffer(program, program->outputs, program->output_count, name);
        for (int32_t core = 0; core < state->cores && *out_equal; core++) {
            const tp_host_tensor *expected = tp_reference_output(state->reference, core, o);
            const char *found = (const char *)result + (once ? once->offset_bytes : 0);
            if (each) {
                const tpucl_status status = tp_loaded_output(state->loaded, ticket, core, record);
                if (status != TPUCL_OK) {
                    free(record);
                    return status;
                }
                found = record + each->offset_bytes;
            }
            *out_equal =
                compare_tensor("output", name, core, step, expected->dtype, &expected->shape, found,
                               expected->data, state->text, state->text_bytes);
        }
    }
    free(record);
    return TPUCL_OK;
}

static tpucl_status compare_variables(run_state *state, bool *out_equal)
{
    tp_variables *variables = tp_executor_variables(state->executor);
    for (int32_t v = 0; v < state->graph->variable_count && *out_equal; v++) {
        const tp_variable *variable = &state->graph->variables[v];
        const tp_host_tensor *expected = tp_reference_variable(state->reference, 0, v);
        void *found = malloc((size_t)tp_shape_bytes(&variable->shape, variable->dtype) + 1);
        const tpucl_status status =
            tp_variables_read(variables, tp_variables_find(variables, variable->name), 0, found);
        if (status == TPUCL_OK)
            *out_equal =
                compare_tensor("variable", variable->name, 0, -1, variable->dtype, &variable->shape,
                               found, expected->data, state->text, state->text_bytes);
        free(found);
        TP_TRY(status);
    }
    return TPUCL_OK;
}

static tpucl_status run_steps(run_state *state, bool *out_equal)
{
    const int32_t steps = state->options->steps ? state->options->steps : 2;
    *out_equal = true;
    TP_TRY(start(state));
    for (int32_t step = 0; step < steps && *out_equal; step++) {
        tp_feed *feed;
        uint64_t ticket;
        TP_TRY(tp_loaded_acquire(state->loaded, &feed));
        feed_inputs(state, feed, step);
        TP_TRY(tp_loaded_submit(state->loaded, feed, (uint32_t)step, &ticket));
        TP_TRY(tp_reference_step(state->reference, (const void *const *)state->inputs,
                                 (uint32_t)step));
        TP_TRY(compare_outputs(state, ticket, step, out_equal));
    }
    return *out_equal ? compare_variables(state, out_equal) : TPUCL_OK;
}

static void allocate_inputs(run_state *state)
{
    const tp_graph *graph = state->graph;
    const int32_t count = state->cores * graph->input_count;
    state->inputs = calloc((size_t)count + 1, sizeof(void *));
    for (int32_t i = 0; i < count; i++) {
        const tp_node *node = tp_graph_node(graph, graph->inputs[i % graph->input_count].node);
        state->inputs[i] = calloc(1, (size_t)tp_shape_bytes(&node->shape, node->dtype) + 1);
    }
}

static void note_coverage(const tp_graph *graph)
{
    const char *identity = tp_device_identity(program_run_device());
    coverage_note_graph(strstr(identity, "Oclgrind") ? "oclgrind" : "device", graph);
    coverage_note_graph("reference", graph);
}

bool program_run_compare(const tp_graph *graph, const program_run_options *options, char *out_text,
                         size_t text_bytes)
{
    run_state state = {.graph = graph,
                       .options = options,
                       .cores = options->cores ? options->cores : 1,
                       .text = out_text,
                       .text_bytes = text_bytes};
    bool is_equal = false;
    out_text[0] = '\0';
    allocate_inputs(&state);
    if (run_steps(&state, &is_equal) != TPUCL_OK) {
        is_equal = false;
        snprintf(out_text, text_bytes, "%s\n%s", tpucl_last_error()->message,
                 tpucl_last_error()->trail);
    }
    tp_executor_unload(state.loaded);
    tp_executor_destroy(state.executor);
    tp_program_destroy(state.program);
    tp_reference_destroy(state.reference);
    for (int32_t i = 0; i < state.cores * graph->input_count; i++)
        free(state.inputs[i]);
    free(state.inputs);
    if (is_equal) note_coverage(graph);
    return is_equal;
}

void program_run_expect_equal(const tp_graph *graph, const program_run_options *options)
{
    char text[2048];
    const bool is_equal = program_run_compare(graph, options, text, sizeof text);
    cr_assert(is_equal, "%s", text);
}
