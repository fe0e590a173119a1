/* SPDX-License-Identifier: Apache-2.0
 * The passes in order, with a dump of what each one made when asked for.
 */
#include "compile/compile.h"

#include <inttypes.h>
#include "compile/lower.h"
#include "compile/pass.h"
#include "core/alloc.h"
#include "core/env.h"
#include "core/file.h"
#include "graph/print.h"
#include "graph/verify.h"

typedef struct graph_pass {
    const char *name;
    tpucl_status (*run)(const tp_graph *graph, tp_graph **out_graph);
} graph_pass;

static const graph_pass graph_passes[] = {
    {"collective", tp_pass_collective},
    {"groups", tp_pass_groups},
    {"canonical", tp_pass_canonical},
    {"layout", tp_pass_layout},
};

typedef struct cluster_pass {
    const char *name;
    tpucl_status (*run)(tp_fusion *fusion);
} cluster_pass;

static const cluster_pass cluster_passes[] = {
    {"precision", tp_pass_precision},
    {"fuse", tp_pass_fuse},
    {"schedule", tp_pass_schedule},
};

/* ---- dumps ---- */

typedef struct dump {
    const char *folder; /* NULL: none wanted */
    const char *name;
    int count;
} dump;

/* Writes and empties the builder. */
static tpucl_status write_dump(dump *d, const char *stage, tp_str_builder *text)
{
    tp_str_builder path = {0};
    char *bytes = NULL, *file = NULL;
    size_t length;
    tpucl_status status;
    tp_str_builder_printf(&path, "%s/%s.%02d-%s.txt", d->folder, d->name, d->count++, stage);
    TP_TRY_GOTO(status, tp_str_builder_finish(text, &bytes, &length), done);
    TP_TRY_GOTO(status, tp_str_builder_finish(&path, &file, NULL), done);
    TP_TRY_GOTO(status, tp_file_make_folders(d->folder), done);
    TP_TRY_GOTO(status, tp_file_write_atomic(file, bytes, length), done);
done:
    tp_str_builder_deinit(text);
    tp_str_builder_deinit(&path);
    tp_free(bytes);
    tp_free(file);
    return status;
}

static tpucl_status dump_graph(dump *d, const char *stage, const tp_graph *graph)
{
    if (!d->folder) return TPUCL_OK;
    tp_str_builder text = {0};
    tp_graph_print(graph, &text);
    return write_dump(d, stage, &text);
}

static tpucl_status dump_clusters(dump *d, const char *stage, const tp_fusion *fusion)
{
    if (!d->folder) return TPUCL_OK;
    tp_str_builder text = {0};
    tpucl_status status = tp_fusion_print(fusion, &text);
    if (status == TPUCL_OK) return write_dump(d, stage, &text);
    tp_str_builder_deinit(&text);
    return status;
}

static tpucl_status dump_program(dump *d, const tp_program *program)
{
    if (!d->folder) return TPUCL_OK;
    const char *listing;
    TP_TRY(tp_program_print(program, program->arena, &listing));
    tp_str_builder text = {0};
    tp_str_append(&text, listing);
    TP_TRY(write_dump(d, "program", &text));
    for (int32_t i = 0; i < program->launch_count; i++) {
        const tp_launch *launch = &program->launches[i];
        tp_str_builder_printf(&text, "/* ---- launch %" PRId32 " %s, options '%s' ---- */\n%s\n", i,
                              launch->label, launch->options, launch->source);
    }
    return write_dump(d, "kernels", &text);
}

/* ---- the whole way ---- */

/* Runs all passes from graph to graph. */
static tpucl_status transform(const tp_graph *graph, dump *d, tp_graph **out_graph)
{
    *out_graph = NULL;
    TP_TRY(dump_graph(d, "graph", graph));
    for (size_t i = 0; i < sizeof graph_passes / sizeof graph_passes[0]; i++) {
        tp_graph *next = NULL;
        tpucl_status status = graph_passes[i].run(*out_graph ? *out_graph : graph, &next);
#ifndef NDEBUG
        if (status == TPUCL_OK) status = tp_graph_verify(next);
#endif
        tp_graph_destroy(*out_graph);
        *out_graph = next;
        if (status == TPUCL_OK) status = dump_graph(d, graph_passes[i].name, next);
        if (status != TPUCL_OK) {
            tp_graph_destroy(next);
            *out_graph = NULL;
            tp_error_note("pass '%s'", graph_passes[i].name);
            return status;
        }
    }
    return TPUCL_OK;
}

static tpucl_status lower_all(tp_fusion *fusion, const tp_compile_options *options,
                              tp_program_builder *builder)
{
    tp_lowering lowering = {.fusion = fusion, .options = options, .builder = builder};
    tpucl_status status;
    const uint64_t limit = options->max_slab_segment_bytes ? options->max_slab_segment_bytes
                                                           : options->caps->max_allocation_bytes;
    TP_TRY_GOTO(status, tp_lower(&lowering), done);
    TP_TRY_GOTO(status,
                tp_pass_memory(tp_program_builder_program(builder), &lowering.reduces, limit),
                done);
done:
    tp_lowering_deinit(&lowering);
    return status;
}

static tpucl_status compile_clusters(const tp_compile_options *options, dump *d, tp_fusion *fusion,
                                     tp_program **out_program)
{
    for (size_t i = 0; i < sizeof cluster_passes / sizeof cluster_passes[0]; i++) {
        const tpucl_status status = cluster_passes[i].run(fusion);
        if (status != TPUCL_OK) {
            tp_error_note("pass '%s'", cluster_passes[i].name);
            return status;
        }
    }
    TP_TRY(dump_clusters(d, "clusters", fusion));
    tp_program_builder *builder;
    TP_TRY(tp_program_builder_create(d->name, &builder));
    const tpucl_status status = lower_all(fusion, options, builder);
    if (status != TPUCL_OK) {
        tp_program_builder_destroy(builder);
        return status;
    }
    return tp_program_builder_finish(builder, out_program);
}

tpucl_status tp_compile(const tp_graph *graph, const tp_compile_options *options,
                        tp_program **out_program)
{
    tp_graph *final_graph = NULL;
    tp_fusion *fusion = NULL;
    tpucl_status status;
    *out_program = NULL;
    dump d = {.folder = options->dump_folder ? options->dump_folder : tp_env_text(TP_ENV_DUMP),
              .name = options->name ? options->name : "program"};
    TP_TRY(tp_graph_check(graph));
    TP_TRY_GOTO(status, transform(graph, &d, &final_graph), done);
    TP_TRY_GOTO(status, tp_fusion_create(final_graph, options->caps, &fusion), done);
    TP_TRY_GOTO(status, compile_clusters(options, &d, fusion, out_program), done);
    TP_TRY_GOTO(status, dump_program(&d, *out_program), done);
    TP_TRY_GOTO(status, tp_program_verify(*out_program), done);
done:
    tp_fusion_destroy(fusion);
    tp_graph_destroy(final_graph);
    if (status != TPUCL_OK) {
        tp_error_note("while compiling '%s'", d.name);
        tp_program_destroy(*out_program);
        *out_program = NULL;
    }
    return status;
}
