/* SPDX-License-Identifier: Apache-2.0
 * The plain epilogue: kernels/mxu/epilogue_plain.clh as a tp_mxu_epilogue.
 */
#include "kernel/mxu.h"

tpucl_status tp_mxu_plain_epilogue(tp_mxu_problem *problem, tp_arena *arena)
{
    if (problem->c_dtype != TP_F32 && problem->c_dtype != TP_BF16)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a product is stored as f32 or bf16, not as %s",
                       tp_dtype_name(problem->c_dtype));
    tp_kernel_arg *args = TP_ARENA_NEW_ARRAY(arena, tp_kernel_arg, 3);
    if (args == NULL) return TPUCL_OUT_OF_MEMORY;
    args[0] = (tp_kernel_arg){
        .kind = TP_ARG_TENSOR, .tensor = problem->c_tensor, .is_written = true, .u64 = 0};
    args[1] = (tp_kernel_arg){.kind = TP_ARG_U32, .u32 = (uint32_t)problem->m};
    args[2] = (tp_kernel_arg){.kind = TP_ARG_U32, .u32 = (uint32_t)problem->n};
    problem->epilogue = (tp_mxu_epilogue){
        .functions = problem->c_dtype == TP_BF16
                         ? "#define MXU_C_IS_BF16 1\n#include \"mxu/epilogue_plain.clh\"\n"
                         : "#define MXU_C_IS_BF16 0\n#include \"mxu/epilogue_plain.clh\"\n",
        .params = "TP_TENSOR(mxu_c_t, c), uint c_rows, uint c_columns",
        .pass = "TP_TENSOR_PASS(c), c_rows, c_columns",
        .args = args,
        .arg_count = 3,
        .is_plain = true,
    };
    return TPUCL_OK;
}
