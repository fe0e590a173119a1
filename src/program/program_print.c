/* SPDX-License-Identifier: Apache-2.0
 * The listing of a program: sizes first, then buffers, then launches segment by segment.
 */
#include "program/program.h"

#include <inttypes.h>
#include "core/alloc.h"
#include "core/str.h"

static const char *const space_names[] = {"core",   "replicated", "variable", "input",
                                          "output", "result",     "constant"};

static void print_sizes(const tp_program *program, tp_str_builder *out)
{
    char core[TP_STR_DOUBLE_BYTES], replicated[TP_STR_DOUBLE_BYTES], peak[TP_STR_DOUBLE_BYTES];
    uint64_t core_bytes = 0, replicated_bytes = 0;
    for (int32_t i = 0; i < program->core_slab_segments; i++)
        core_bytes += program->core_bytes[i];
    for (int32_t i = 0; i < program->replicated_slab_segments; i++)
        replicated_bytes += program->replicated_bytes[i];
    tp_str_from_bytes(core_bytes, core);
    tp_str_from_bytes(replicated_bytes, replicated);
    tp_str_from_bytes(program->peak_core_bytes, peak);
    tp_str_builder_printf(out,
                          "program %s: core %s in %" PRId32 " slab segments (peak %s), replicated "
                          "%s in %" PRId32 "\n",
                          program->name, core, program->core_slab_segments, peak, replicated,
                          program->replicated_slab_segments);
    tp_str_builder_printf(out,
                          "records: input %" PRIu64 " B, output %" PRIu64 " B, result %" PRIu64
                          " B; constants %" PRIu64 " B\n",
                          program->input_bytes, program->output_bytes, program->result_bytes,
                          program->constant_bytes);
    tp_str_builder_printf(out, "per core: %.6g flop, %.6g bytes; %s, %s\n", program->flops_per_core,
                          program->bytes_per_core,
                          program->is_exact ? "exact" : "outside the contract",
                          program->is_resident ? "cores stay resident" : "cores may come in waves");
}

static void print_view(const tp_program_view *view, tp_str_builder *out)
{
    if (!view->is_view) return;
    tp_str_builder_printf(out, " in b%" PRId32, view->of);
    if (view->stride_bytes)
        tp_str_builder_printf(out, ", %+" PRId64 " B a turn", view->stride_bytes);
    if (view->period)
        tp_str_builder_printf(out, ", %" PRId32 " of %" PRId32, view->phase, view->period);
}

static void print_buffers(const tp_program *program, tp_str_builder *out)
{
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const tp_program_buffer *buffer = &program->buffers[i];
        char shape[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&buffer->shape, shape, sizeof shape);
        tp_str_builder_printf(out, "  b%-3" PRId32 " %s%s  %s", i, tp_dtype_name(buffer->dtype),
                              shape, space_names[buffer->space]);
        if (buffer->space == TP_SPACE_VARIABLE)
            tp_str_builder_printf(out, " '%s'", program->variables[buffer->variable].name);
        else
            tp_str_builder_printf(out, " %" PRId32 "+%" PRIu64, buffer->slab_segment,
                                  buffer->offset_bytes);
        print_view(&buffer->view, out);
        tp_str_builder_printf(out, "  %" PRIu64 " B  launches %" PRId32 "..%" PRId32 "  %s\n",
                              buffer->bytes, buffer->first_use, buffer->last_use, buffer->name);
    }
}

static void print_arg(const tp_kernel_arg *arg, tp_str_builder *out)
{
    switch (arg->kind) {
    case TP_ARG_TENSOR:
        tp_str_builder_printf(out, " %sb%" PRId32, arg->is_written ? ">" : "", arg->tensor);
        if (arg->offset_elems) tp_str_builder_printf(out, "+%" PRIu64, arg->offset_elems);
        break;
    case TP_ARG_S32:
        tp_str_builder_printf(out, " %" PRId32, arg->s32);
        break;
    case TP_ARG_U32:
        tp_str_builder_printf(out, " %" PRIu32, arg->u32);
        break;
    case TP_ARG_U64:
        tp_str_builder_printf(out, " %" PRIu64, arg->u64);
        break;
    case TP_ARG_F32:
        tp_str_builder_printf(out, " %.9g", (double)arg->f32);
        break;
    case TP_ARG_CORE_BASE:
        tp_str_append(out, " core_base");
        break;
    case TP_ARG_POSITION:
        tp_str_append(out, " position");
        break;
    case TP_ARG_CORE_STEP:
        tp_str_append(out, " core_step");
        break;
    case TP_ARG_STEP:
        tp_str_append(out, " step");
        break;
    case TP_ARG_SEED:
        tp_str_append(out, " seed");
        break;
    case TP_ARG_CORES:
        tp_str_append(out, " cores");
        break;
    case TP_ARG_SUM:
        tp_str_builder_printf(out, " sum>b%" PRId32, arg->tensor);
        break;
    case TP_ARG_LOCAL:
        tp_str_builder_printf(out, " local %" PRIu64, arg->u64);
        break;
    }
}

static void print_launch(const tp_program *program, int32_t index, tp_str_builder *out)
{
    const tp_launch *launch = &program->launches[index];
    tp_str_builder_printf(out, "  %-3" PRId32 " %s [%s] %zux%zux%zu by %zux%zux%zu", index,
                          launch->label, launch->entry, launch->global[0], launch->global[1],
                          launch->global[2], launch->local[0], launch->local[1], launch->local[2]);
    if (launch->flops > 0) tp_str_builder_printf(out, "  %.4g flop", launch->flops);
    if (launch->bytes > 0) tp_str_builder_printf(out, "  %.4g B", launch->bytes);
    tp_str_append(out, "  (");
    for (int32_t i = 0; i < launch->arg_count; i++)
        print_arg(&launch->args[i], out);
    tp_str_append(out, " )\n");
}

static void print_segment(const tp_program *program, const tp_program_segment *segment,
                          tp_str_builder *out)
{
    tp_str_builder_printf(out, "segment %s, %" PRId32 " launches\n",
                          segment->is_per_core ? "per core" : "replicated", segment->launch_count);
    for (int32_t i = 0; i < segment->launch_count; i++) {
        const int32_t launch = segment->first_launch + i;
        const tp_program_loop *loop = tp_program_loop_at(program, launch);
        if (loop && loop->first_launch == launch)
            tp_str_builder_printf(
                out, "  loop of %" PRId64 " turns, launches %" PRId32 "..%" PRId32 "\n",
                loop->turns, launch, launch + loop->launch_count - 1);
        print_launch(program, launch, out);
    }
    if (!segment->has_reduce) return;
    const tp_program_reduce *reduce = &segment->reduce;
    tp_str_builder_printf(out,
                          "  reduce over cores: %" PRIu64 " f32, core %" PRId32 "+%" PRIu64
                          " to replicated %" PRId32 "+%" PRIu64,
                          reduce->core_elems, reduce->core_slab_segment, reduce->core_offset_bytes,
                          reduce->replicated_slab_segment, reduce->replicated_offset_bytes);
    if (reduce->core_elems < reduce->elems)
        tp_str_builder_printf(out, "; %" PRIu64 " f32 behind it by launches",
                              reduce->elems - reduce->core_elems);
    tp_str_append(out, "\n");
}

static void print_ports(const char *kind, const tp_program_port *ports, int32_t count,
                        tp_str_builder *out)
{
    for (int32_t i = 0; i < count; i++)
        tp_str_builder_printf(out, "%s '%s' b%" PRId32 "\n", kind, ports[i].name, ports[i].buffer);
}

tpucl_status tp_program_print(const tp_program *program, tp_arena *arena, const char **out_text)
{
    tp_str_builder out = {0};
    print_sizes(program, &out);
    print_ports("input", program->inputs, program->input_count, &out);
    print_ports("output", program->outputs, program->output_count, &out);
    print_ports("result", program->results, program->result_count, &out);
    tp_str_append(&out, "buffers\n");
    print_buffers(program, &out);
    for (int32_t i = 0; i < program->segment_count; i++)
        print_segment(program, &program->segments[i], &out);
    char *text = NULL;
    TP_TRY(tp_str_builder_finish(&out, &text, NULL));
    *out_text = tp_arena_strdup(arena, text);
    tp_free(text);
    return *out_text ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}
