/* SPDX-License-Identifier: Apache-2.0
 * Compiling a graph for a runtime's devices, with kernels that were verified there. */
#include "api/program_internal.h"

#include "core/alloc.h"
#include "verify/compile_verified.h"

static tpucl_status compile_for_devices(tpucl_program *program, const tp_graph *graph,
                                        const char *name, bool fast, tp_program ***out_programs)
{
    const tp_core_map *map = program->runtime->map;
    const tp_program_cache *cache = program->runtime->cache;
    *out_programs = TP_ARENA_NEW_ARRAY(program->arena, tp_program *, (size_t)map->device_count);
    if (!*out_programs) return TPUCL_OUT_OF_MEMORY;
    const tp_compile_verified_options options = {.name = name,
                                                 .is_fast_math = fast,
                                                 .cache_folder =
                                                     cache ? tp_program_cache_folder(cache) : NULL};
    TP_TRY(tp_compile_for_devices(graph, map, &options, *out_programs));
    return TPUCL_OK;
}

/* What outlives the graph. */
static tpucl_status copy_description(tpucl_program *program, const tpucl_graph *graph)
{
    program->batch = graph->batch;
    program->has_loss = graph->has_loss;
    program->metric_count = graph->metric_count;
    for (int32_t i = 0; i < graph->metric_count; i++) {
        program->metric_names[i] = tp_arena_strdup(program->arena, graph->metrics[i].name);
        if (!program->metric_names[i]) return TPUCL_OUT_OF_MEMORY;
    }
    program->group_count = 1;
    program->group_size = program->runtime->map->core_count;
    if (!graph->group_count) return TPUCL_OK;
    program->group_count = graph->group_count;
    program->group_size = (int32_t)graph->groups[0].count;
    size_t cores = (size_t)program->group_count * (size_t)program->group_size;
    program->group_cores = TP_ARENA_NEW_ARRAY(program->arena, int32_t, cores);
    if (!program->group_cores) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < cores; i++)
        program->group_cores[i] = (int32_t)graph->groups[0].cores[i]; /* group after group */
    return TPUCL_OK;
}

static tpucl_status compile_both(tpucl_program *program, const tpucl_graph *graph, bool fast)
{
    tp_graph *train = NULL, *evaluate = NULL;
    tpucl_status status;
    int32_t cores = program->runtime->map->core_count;
    TP_TRY_GOTO(status, tp_api_graph_evaluate(graph, &evaluate), done);
    if (graph->has_loss) {
        TP_TRY_GOTO(status, tp_api_graph_train(graph, cores, &train), done);
        TP_TRY_GOTO(status, compile_for_devices(program, train, "train", fast, &program->train),
                    done);
    }
    TP_TRY_GOTO(status,
                compile_for_devices(program, evaluate, "evaluate", fast, &program->evaluate), done);
    TP_TRY_GOTO(status, copy_description(program, graph), done);
done:
    tp_graph_destroy(train);
    tp_graph_destroy(evaluate);
    return status;
}

tpucl_status tpucl_program_compile(tpucl_runtime *runtime, const tpucl_graph *graph,
                                   const tpucl_program_options *options,
                                   tpucl_program **out_program)
{
    TP_API_NEED(runtime);
    TP_API_NEED(graph);
    TP_API_NEED(out_program);
    *out_program = NULL;
    tpucl_program_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_program_options));
    TP_TRY(tpucl_graph_check(graph));
    tpucl_program *program = TP_NEW(tpucl_program);
    if (!program) return TPUCL_OUT_OF_MEMORY;
    program->runtime = runtime;
    tpucl_status status;
    TP_TRY_GOTO(status, tp_arena_create(0, &program->arena), failed);
    TP_TRY_GOTO(status, compile_both(program, graph, all.fast), failed);
    *out_program = program;
    return TPUCL_OK;
failed:
    tpucl_program_destroy(program);
    return status;
}

void tpucl_program_destroy(tpucl_program *program)
{
    if (!program) return;
    tp_programs_destroy(program->train, program->runtime->map->device_count);
    tp_programs_destroy(program->evaluate, program->runtime->map->device_count);
    tp_arena_destroy(program->arena);
    tp_free(program);
}

static const tp_program *main_program(const tpucl_program *program)
{
    return program->train ? program->train[0] : program->evaluate[0];
}

tpucl_program_stats tpucl_program_query(const tpucl_program *program)
{
    const tp_program *inner = main_program(program);
    tpucl_program_stats stats = {
        .flops = inner->flops_per_core,
        .bytes_moved = (uint64_t)inner->bytes_per_core,
        .peak_bytes = inner->peak_core_bytes,
        .launches = inner->launch_count,
        .cores = program->runtime->map->core_count,
        .exact = inner->is_exact,
    };
    for (int32_t i = 0; i < inner->variable_count; i++) {
        const tp_program_variable *variable = &inner->variables[i];
        stats.variable_bytes += variable->bytes;
        if (variable->is_trainable)
            stats.parameter_count += (uint64_t)tp_shape_elems(&variable->shape);
    }
    return stats;
}

tpucl_status tpucl_program_print(const tpucl_program *program, char **out_text)
{
    TP_API_NEED(program);
    TP_API_NEED(out_text);
    tp_arena *arena = NULL;
    const char *text = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    tpucl_status status = tp_program_print(main_program(program), arena, &text);
    if (status == TPUCL_OK) {
        *out_text = tp_alloc_strdup(text);
        if (!*out_text) status = TPUCL_OUT_OF_MEMORY;
    }
    tp_arena_destroy(arena);
    TP_TRY(status);
    return TPUCL_OK;
}
