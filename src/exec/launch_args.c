/* SPDX-License-Identifier: Apache-2.0
 * Launch arguments to OpenCL arguments. */
#include "exec/launch_args.h"

#include "device/clblast.h"

static tpucl_status set_tensor(tp_device_kernel *kernel, const tp_kernel_arg *arg,
                               const tp_tensor_placer *placer, uint32_t *index)
{
    tp_tensor_place place = {0};
    TP_TRY(placer->place(placer->user, arg, *index + 1, &place));
    uint64_t offset = place.offset_elems + arg->offset_elems;
    TP_TRY(tp_device_kernel_set_buffer(kernel, (*index)++, place.buffer));
    TP_TRY(tp_device_kernel_set_bytes(kernel, (*index)++, &offset, sizeof offset));
    return tp_device_kernel_set_bytes(kernel, (*index)++, &place.core_stride_elems,
                                      sizeof place.core_stride_elems);
}

static tpucl_status set_word(tp_device_kernel *kernel, uint32_t word, uint32_t *index,
                             int32_t *out_index)
{
    *out_index = (int32_t)*index;
    return tp_device_kernel_set_bytes(kernel, (*index)++, &word, sizeof word);
}

tpucl_status tp_launch_set_sum(tp_device_kernel *kernel, int32_t index, tp_buffer *buffer,
                               uint64_t offset_elems, bool is_result)
{
    const uint32_t flag = is_result, first = (uint32_t)index;
    TP_TRY(tp_device_kernel_set_buffer(kernel, first, buffer));
    TP_TRY(tp_device_kernel_set_bytes(kernel, first + 1, &offset_elems, sizeof offset_elems));
    return tp_device_kernel_set_bytes(kernel, first + 2, &flag, sizeof flag);
}

static tpucl_status set_sum(tp_device_kernel *kernel, const tp_kernel_arg *arg,
                            const tp_tensor_placer *placer, uint32_t *index, int32_t *out_index)
{
    tp_tensor_place place = {0};
    TP_TRY(placer->place(placer->user, arg, *index + 1, &place));
    *out_index = (int32_t)*index;
    *index += 3;
    return tp_launch_set_sum(kernel, *out_index, place.buffer, place.offset_elems, true);
}

static tpucl_status set_arg(tp_device_kernel *kernel, const tp_launch *launch,
                            const tp_kernel_arg *arg, uint64_t seed, const tp_tensor_placer *placer,
                            uint32_t *index, tp_launch_indexes *indexes)
{
    switch (arg->kind) {
    case TP_ARG_TENSOR:
        return set_tensor(kernel, arg, placer, index);
    case TP_ARG_S32:
        return tp_device_kernel_set_bytes(kernel, (*index)++, &arg->s32, sizeof arg->s32);
    case TP_ARG_U32:
        return tp_device_kernel_set_bytes(kernel, (*index)++, &arg->u32, sizeof arg->u32);
    case TP_ARG_U64:
        return tp_device_kernel_set_bytes(kernel, (*index)++, &arg->u64, sizeof arg->u64);
    case TP_ARG_F32:
        return tp_device_kernel_set_bytes(kernel, (*index)++, &arg->f32, sizeof arg->f32);
    case TP_ARG_CORE_BASE:
        return set_word(kernel, 0, index, &indexes->core_base);
    case TP_ARG_CORE_STEP:
        return set_word(kernel, 1, index, &indexes->core_step);
    case TP_ARG_POSITION:
        return set_word(kernel, 0, index, &indexes->position);
    case TP_ARG_STEP:
        return set_word(kernel, 0, index, &indexes->step);
    case TP_ARG_SEED:
        return tp_device_kernel_set_bytes(kernel, (*index)++, &seed, sizeof seed);
    case TP_ARG_CORES:
        return set_word(kernel, 1, index, &indexes->cores);
    case TP_ARG_SUM:
        return set_sum(kernel, arg, placer, index, &indexes->sum);
    case TP_ARG_LOCAL:
        return tp_device_kernel_set_local(kernel, (*index)++, (size_t)arg->u64);
    }
    return TP_FAIL(TPUCL_INTERNAL, "launch '%s' has an argument of unknown kind %d", launch->label,
                   (int)arg->kind);
}

tpucl_status tp_launch_set_args(tp_device_kernel *kernel, const tp_launch *launch, uint64_t seed,
                                const tp_tensor_placer *placer, tp_launch_indexes *out_indexes)
{
    uint32_t index = 0;
    *out_indexes = (tp_launch_indexes){-1, -1, -1, -1, -1, -1};
    for (int32_t i = 0; i < launch->arg_count; i++) {
        tpucl_status status =
            set_arg(kernel, launch, &launch->args[i], seed, placer, &index, out_indexes);
        if (status == TPUCL_OK) continue;
        tp_error_note("argument %d of launch '%s'", i, launch->label);
        return status;
    }
    return TPUCL_OK;
}

tpucl_status tp_launch_library(tp_device *device, const tp_launch *launch, int32_t cores,
                               const tp_tensor_place places[3])
{
    const tp_library_gemm *gemm = &launch->gemm;
    tp_clblast_problem problem = {.batch = gemm->batch,
                                  .m = gemm->m,
                                  .n = gemm->n,
                                  .k = gemm->k,
                                  .transpose_a = gemm->transpose_a,
                                  .transpose_b = gemm->transpose_b,
                                  .lda = gemm->lda,
                                  .ldb = gemm->ldb,
                                  .ldc = gemm->ldc,
                                  .stride_a = gemm->stride_a,
                                  .stride_b = gemm->stride_b,
                                  .stride_c = gemm->stride_c};
    uint64_t *offsets[3] = {&problem.offset_a, &problem.offset_b, &problem.offset_c};
    for (int32_t core = 0; core < cores; core++) {
        for (int i = 0; i < 3; i++)
            *offsets[i] = places[i].offset_elems + launch->args[i].offset_elems +
                          (uint64_t)core * places[i].core_stride_elems;
        TP_TRY(tp_clblast_sgemm(device, &problem, places[0].buffer, places[1].buffer,
                                places[2].buffer, NULL));
    }
    return TPUCL_OK;
}
