/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "harness/sample_device.h"
#include "kernel/mxu.h"

static tp_arena *arena;
static tp_mxu_problem problem;
static tp_mxu_plan plan;
static tp_device_caps cpu, gpu;

static void setup(void)
{
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
    cpu = sample_cpu();
    gpu = sample_gpu();
    problem = sample_dense(128);
    problem.b.is_replicated = true;
    problem.a_tensor = 4;
    problem.b_tensor = 7;
    problem.c_tensor = 9;
    cr_assert(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_OK);
}

static void teardown(void)
{
    tp_arena_destroy(arena);
}

TestSuite(mxu_catalog, .init = setup, .fini = teardown);

static void create(const tp_device_caps *caps, const tp_mxu_allow *allow)
{
    cr_assert(tp_mxu_plan_create(&problem, caps, allow, 20, arena, &plan) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
}

static bool has_declined(const char *text)
{
    for (int32_t i = 0; i < plan.declined_count; i++)
        if (strstr(plan.declined[i], text) != NULL) return true;
    return false;
}

static bool uses_tensor(const tp_launch *launch, int32_t tensor, bool is_written)
{
    for (int32_t i = 0; i < launch->arg_count; i++)
        if (launch->args[i].kind == TP_ARG_TENSOR && launch->args[i].tensor == tensor &&
            launch->args[i].is_written == is_written)
            return true;
    return false;
}

Test(mxu_catalog, names_end_with_the_reference)
{
    const char *const *names = tp_mxu_variant_names();
    int count = 0;
    while (names[count] != NULL)
        count++;
    cr_assert(count == 11);
    cr_assert_str_eq(names[count - 1], "mxu_reference");
}

/* Where the processor multiplies pairs of bf16, and only there. */
Test(mxu_catalog, pairs_need_the_instruction)
{
    tp_device_caps caps = cpu;
    create(&caps, NULL);
    cr_assert(has_declined("mxu_pairs: the device has no instruction for pairs of bf16"));
    caps.has_bf16_pairs = true;
    caps.preferred_float_vector = 16;
    create(&caps, NULL);
    cr_assert_str_eq(plan.variant, "mxu_pairs");
    cr_assert(plan.launch_count == 2 && plan.scratch_count == 1);
    cr_assert(!plan.scratch[0].is_per_core && plan.scratch[0].pack_key != NULL);
    /* words of two, and the least magnitudes of 16 tiles of 7 chunks */
    cr_assert(plan.scratch[0].bytes == 784 / 2 * 512 * 4 + 16 * 7 * 4);
    cr_assert(strstr(plan.launches[1].options, "PAIRS_ARE_STEPS=0") != NULL);
}

/* Weights are packed once per device, by a launch of their own that a step can share. */
Test(mxu_catalog, cpu_packs_weights_and_runs_a_register_tile)
{
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_register");
    cr_assert(has_declined("clblast_sgemm: "));
    cr_assert(plan.launch_count == 2 && plan.scratch_count == 1);
    cr_assert(!plan.scratch[0].is_per_core);
    cr_assert(plan.scratch[0].packed_from == 7 && plan.scratch[0].pack_key != NULL);
    cr_assert(plan.scratch[0].bytes == 784 * 512 * 4);
    cr_assert(plan.launch_fills_scratch[0] == 0 && plan.launch_fills_scratch[1] == -1);
    cr_assert(!plan.launches[0].is_per_core && plan.launches[1].is_per_core);
    cr_assert(uses_tensor(&plan.launches[0], 7, false) && uses_tensor(&plan.launches[0], 20, true));
    cr_assert(uses_tensor(&plan.launches[1], 4, false) &&
              uses_tensor(&plan.launches[1], 20, false));
    cr_assert(uses_tensor(&plan.launches[1], 9, true));
    cr_assert(plan.launches[1].grid_z == 1 && plan.launches[1].global[2] == 1);
    cr_assert(plan.launches[1].flops == 2.0 * 128 * 512 * 784);
    cr_assert(strstr(plan.launches[1].label, "dense mxu_register 8x32") != NULL);
}

/* Two products of the same weights share what is packed, two that read them another way do not. */
Test(mxu_catalog, equal_packing_has_equal_keys)
{
    create(&cpu, NULL);
    const char *key = plan.scratch[0].pack_key;
    problem.m = 1000;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.scratch[0].pack_key, key);
    problem.precision = TP_PRECISION_HIGH;
    create(&cpu, NULL);
    cr_assert_str_neq(plan.scratch[0].pack_key, key);
    problem.precision = TP_PRECISION_DEFAULT;
    problem.b.stride_outer = 784;
    problem.b.stride_inner = 1;
    create(&cpu, NULL);
    cr_assert_str_neq(plan.scratch[0].pack_key, key);
}

/* The launch that packs B in the plan for an input gradient of this filter and these channels. */
static const tp_launch *packing_of(tp_mxu_kind kind, int64_t taps, int64_t side, int64_t in_c,
                                   int64_t out_c)
{
    const int64_t pad = (taps - 1) / 2;
    problem.kind = kind;
    problem.conv =
        (tp_mxu_conv){4, side, side, in_c, side, side, out_c, taps, taps, 1, 1, pad, pad, 1, 1, 1};
    const int64_t pixels = 4 * side * side;
    problem.m = pixels;
    problem.n = kind == TP_MXU_CONV ? out_c : in_c;
    problem.k = taps * taps * (kind == TP_MXU_CONV ? in_c : out_c);
    problem.b.stride_outer = 1;
    problem.b.stride_inner = problem.n;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.launches[0].entry, "mxu_pack_b");
    return &plan.launches[0];
}

static uint64_t u64_arg(const tp_launch *launch, int32_t index)
{
    cr_assert_eq(launch->args[index].kind, TP_ARG_U64);
    return launch->args[index].u64;
}

Test(mxu_catalog, packings_that_read_alike_share_a_program)
{
    const char *forward = packing_of(TP_MXU_CONV, 3, 14, 64, 64)->options;
    cr_assert_str_eq(packing_of(TP_MXU_CONV, 1, 28, 32, 128)->options, forward);
    const char *gradient = packing_of(TP_MXU_CONV_INPUT_GRAD, 3, 14, 64, 64)->options;
    cr_assert_str_eq(packing_of(TP_MXU_CONV_INPUT_GRAD, 5, 28, 64, 64)->options, gradient);
    cr_assert_str_eq(packing_of(TP_MXU_CONV_INPUT_GRAD, 3, 14, 64, 32)->options, gradient);
    /* One tap: w[ci][co] with k = co and n = ci is a strided array like any other. */
    const tp_launch *one = packing_of(TP_MXU_CONV_INPUT_GRAD, 1, 14, 64, 96);
    cr_assert_eq(u64_arg(one, 7), 96);
    cr_assert_eq(u64_arg(one, 8), 1);
    const char *options = one->options;
    cr_assert_str_eq(packing_of(TP_MXU_CONV_INPUT_GRAD, 1, 28, 32, 128)->options, options);
}

Test(mxu_catalog, matrix_units_are_for_fast_math)
{
    create(&gpu, NULL);
    cr_assert(has_declined("mxu_matrix: matrix units have their own order of summation"));
    problem.is_fast_math = true;
    create(&gpu, NULL);
    cr_assert_str_neq(plan.variant, "mxu_matrix");
    cr_assert(has_declined("mxu_matrix: the device has no matrix unit"));
    gpu.matrix_unit = TP_MATRIX_UNIT_NVIDIA;
    create(&gpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_matrix");
    cr_assert(strstr(plan.launches[0].options, "-DMATRIX_UNIT=1") != NULL);
    problem.precision = TP_PRECISION_HIGH;
    create(&gpu, NULL);
    cr_assert_str_neq(plan.variant, "mxu_matrix");
}

Test(mxu_catalog, each_matrix_unit_has_its_own_work_groups)
{
    static const struct {
        tp_matrix_unit unit;
        size_t items;
    } rows[] = {{TP_MATRIX_UNIT_INTEL_16, 64},
                {TP_MATRIX_UNIT_INTEL_8, 32},
                {TP_MATRIX_UNIT_MFMA, 256},
                {TP_MATRIX_UNIT_WMMA_GFX11, 128},
                {TP_MATRIX_UNIT_WMMA_GFX12, 128}};
    problem.is_fast_math = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpu.matrix_unit = rows[i].unit;
        create(&gpu, NULL);
        cr_assert_str_eq(plan.variant, "mxu_matrix");
        cr_assert_eq(plan.launches[0].local[0], rows[i].items);
        cr_assert(strstr(plan.launches[0].options, "-DMATRIX_UNIT_IS_EMULATED=0") != NULL);
    }
}

Test(mxu_catalog, subgroups_go_before_local_memory)
{
    gpu.subgroup_sizes = 32;
    create(&gpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_local");
    gpu.subgroup_sizes = 8 + 16 + 32;
    create(&gpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_subgroup");
    cr_assert(strstr(plan.launches[0].options, "-DSUBGROUP=16") != NULL);
    cr_assert(strstr(plan.launches[0].options, "-DSUBGROUP_IS_EMULATED=0") != NULL);
}

Test(mxu_catalog, gpu_stages_through_local_memory)
{
    create(&gpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_local");
    cr_assert(has_declined("mxu_register: the device's vectors have 1 floats"));
    gpu.local_memory_bytes = 1024;
    create(&gpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_direct");
    cr_assert(has_declined("bytes of local memory"));
}

Test(mxu_catalog, tiny_products_are_not_packed)
{
    problem.m = 2;
    problem.n = 10;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_direct");
    cr_assert(has_declined("mxu_register: 15680 multiply-adds"));
}

/* Passes and blocks of k become units, combined by a further launch that owns the epilogue. */
Test(mxu_catalog, long_k_is_split_and_combined)
{
    problem.k = 20000;
    problem.precision = TP_PRECISION_HIGHEST;
    create(&cpu, NULL);
    cr_assert(plan.launch_count == 3 && plan.scratch_count == 2);
    cr_assert(plan.scratch[1].bytes == 18ull * 128 * 512 * 4 && plan.scratch[1].is_per_core);
    cr_assert(plan.launches[1].grid_z == 18);
    cr_assert(!uses_tensor(&plan.launches[1], 9, true) && uses_tensor(&plan.launches[1], 21, true));
    cr_assert(uses_tensor(&plan.launches[2], 9, true) && plan.launches[2].grid_z == 1);
    cr_assert_str_eq(plan.launches[2].entry, "mxu_combine");
}

Test(mxu_catalog, scratch_beyond_the_largest_buffer_is_declined)
{
    cpu.max_allocation_bytes = 1 << 20;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_direct");
    cr_assert(has_declined("packed B would take 2 MiB, the device's largest buffer has 1 MiB"));
}

Test(mxu_catalog, a_result_once_per_device_is_launched_once)
{
    problem.a.is_replicated = problem.c_is_replicated = true;
    create(&cpu, NULL);
    for (int32_t i = 0; i < plan.launch_count; i++)
        cr_assert(!plan.launches[i].is_per_core);
    problem.a.is_replicated = false;
    cr_assert(tp_mxu_plan_create(&problem, &cpu, NULL, 20, arena, &plan) == TPUCL_INVALID_ARGUMENT);
}

static bool forbid_register(void *user, const char *variant, const tp_mxu_problem *p,
                            const tp_mxu_choice *choice)
{
    (void)user;
    (void)p;
    (void)choice;
    return strcmp(variant, "mxu_register") != 0;
}

Test(mxu_catalog, a_variant_with_a_bad_verdict_is_passed_over)
{
    const tp_mxu_allow allow = {.is_allowed = forbid_register};
    create(&cpu, &allow);
    cr_assert_str_eq(plan.variant, "mxu_direct");
    cr_assert(has_declined("mxu_register: it did not reproduce the reference bits"));
}

Test(mxu_catalog, forced_variants_ignore_preferences_only)
{
    const tp_mxu_allow local = {.forced = "mxu_local"}, unknown = {.forced = "mxu_none"};
    const tp_mxu_allow library = {.forced = "clblast_sgemm"};
    create(&cpu, &local);
    cr_assert_str_eq(plan.variant, "mxu_local");
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &unknown, 20, arena, &plan) == TPUCL_UNSUPPORTED);
    cr_assert(tp_mxu_plan_create(&problem, &cpu, &library, 20, arena, &plan) == TPUCL_UNSUPPORTED);
}

#if TPUCL_HAVE_CLBLAST
Test(mxu_catalog, fast_f32_goes_to_the_library)
{
    problem.is_fast_math = true;
    problem.precision = TP_PRECISION_F32;
    problem.a.dtype = problem.b.dtype = TP_F32;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "clblast_sgemm");
    cr_assert(plan.launch_count == 1 && plan.launches[0].kind == TP_LAUNCH_CLBLAST_SGEMM);
    const tp_library_gemm *gemm = &plan.launches[0].gemm;
    cr_assert(gemm->m == 128 && gemm->n == 512 && gemm->k == 784 && !gemm->transpose_a);
    cr_assert(gemm->lda == 784 && gemm->ldb == 512 && gemm->ldc == 512 && !gemm->transpose_b);
    problem.a.stride_outer = 1;
    problem.a.stride_inner = 128;
    create(&cpu, NULL);
    cr_assert(plan.launches[0].gemm.transpose_a && plan.launches[0].gemm.lda == 128);
    problem.epilogue.is_plain = false;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_register");
}
#endif

Test(mxu_catalog, empty_results_need_no_launch_and_empty_sums_the_reference)
{
    problem.m = 0;
    create(&cpu, NULL);
    cr_assert(plan.launch_count == 0);
    problem.m = 128;
    problem.k = 0;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_reference");
    cr_assert(has_declined("k is 0"));
}

static void expect_refused(tpucl_status expected, const char *text)
{
    cr_expect(tp_mxu_plan_create(&problem, &cpu, NULL, 20, arena, &plan) == expected);
    cr_expect(strstr(tpucl_last_error()->message, text) != NULL, "%s", tpucl_last_error()->message);
}

Test(mxu_catalog, problems_that_cannot_be_are_refused)
{
    const tp_mxu_problem good = problem;
    problem.m = -1;
    expect_refused(TPUCL_INVALID_ARGUMENT, "m is -1");
    problem = good;
    problem.k = (int64_t)1 << 40;
    expect_refused(TPUCL_INVALID_ARGUMENT, "k is 1099511627776");
    problem = good;
    problem.a.dtype = TP_S32;
    expect_refused(TPUCL_INVALID_ARGUMENT, "A is s32");
    problem = good;
    problem.b.stride_inner = -4;
    expect_refused(TPUCL_INVALID_ARGUMENT, "B has a stride below 0");
    problem = good;
    problem.epilogue.functions = NULL;
    expect_refused(TPUCL_INVALID_ARGUMENT, "no epilogue");
    problem = good;
    problem.c_dtype = TP_U8;
    cr_expect(tp_mxu_plain_epilogue(&problem, arena) == TPUCL_INVALID_ARGUMENT);
}

Test(mxu_catalog, a_convolution_has_the_extents_of_its_geometry)
{
    problem.kind = TP_MXU_CONV;
    problem.conv = (tp_mxu_conv){2, 8, 8, 16, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    problem.m = 2 * 64;
    problem.n = 32;
    problem.k = 9 * 16;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_register");
    cr_assert(strstr(plan.launches[1].options, "-DCONV_KERNEL_H=3") != NULL);
    /* images and padding are arguments: another image has the same program */
    const char *options = plan.launches[1].options;
    const int32_t arg_count = plan.launches[1].arg_count;
    problem.conv = (tp_mxu_conv){1, 8, 16, 16, 8, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    create(&cpu, NULL);
    cr_assert_str_eq(plan.launches[1].options, options);
    cr_assert_eq(plan.launches[1].arg_count, arg_count);
    problem.conv = (tp_mxu_conv){2, 8, 8, 16, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    problem.k = 9 * 15;
    expect_refused(TPUCL_INVALID_ARGUMENT, "expected 128, 32, 144");
    problem.k = 9 * 16;
    problem.conv.stride_w = 0;
    expect_refused(TPUCL_INVALID_ARGUMENT, "stride_w is 0");
    problem.conv.stride_w = 1;
    problem.conv.pad_left = (int64_t)1 << 30;
    expect_refused(TPUCL_UNSUPPORTED, "reaches beyond");
}

/* Element (m, k) of A and (k, n) of B lie where the formulas of kernel/mxu.h put them. */
static void check_strides(const tp_mxu_problem *conv, int64_t a_m, int64_t a_k, int64_t b_n,
                          int64_t b_k)
{
    const tp_mxu_problem dot = tp_mxu_simplify(conv);
    cr_assert_eq(dot.kind, TP_MXU_DOT);
    cr_assert_eq(dot.m, conv->m);
    cr_assert_eq(dot.k, conv->k);
    cr_assert_eq(dot.a.stride_outer, a_m);
    cr_assert_eq(dot.a.stride_inner, a_k);
    cr_assert_eq(dot.b.stride_outer, b_n);
    cr_assert_eq(dot.b.stride_inner, b_k);
    cr_assert_eq(dot.b.is_replicated, conv->b.is_replicated);
}

Test(mxu_catalog, pointwise_convolutions_are_products)
{
    problem.conv = (tp_mxu_conv){2, 5, 7, 24, 5, 7, 40, 1, 1, 1, 1, 0, 0, 1, 1, 1};
    problem.kind = TP_MXU_CONV;
    check_strides(&problem, 24, 1, 1, 40);
    problem.kind = TP_MXU_CONV_INPUT_GRAD;
    check_strides(&problem, 40, 1, 40, 1);
    problem.kind = TP_MXU_CONV_FILTER_GRAD;
    check_strides(&problem, 1, 24, 1, 40);

    const tp_mxu_conv others[] = {
        {2, 5, 7, 24, 3, 4, 40, 1, 1, 2, 2, 0, 0, 1, 1, 1}, /* strides */
        {2, 5, 7, 24, 7, 9, 40, 1, 1, 1, 1, 1, 1, 1, 1, 1}, /* padding */
        {2, 5, 7, 24, 5, 8, 40, 1, 1, 1, 1, 0, 0, 1, 1, 1}, /* padding at the end */
        {2, 5, 7, 24, 5, 7, 40, 1, 3, 1, 1, 0, 1, 1, 1, 1}, /* several taps */
        {2, 5, 7, 24, 5, 7, 40, 1, 1, 1, 1, 0, 0, 1, 1, 2}, /* groups */
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        problem.conv = others[i];
        cr_assert_eq(tp_mxu_simplify(&problem).kind, TP_MXU_CONV_FILTER_GRAD, "%zu", i);
    }
}

Test(mxu_catalog, groups_of_channels_have_a_kernel_of_their_own)
{
    problem.kind = TP_MXU_CONV;
    problem.conv = (tp_mxu_conv){2, 8, 8, 32, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 32};
    problem.m = 2 * 64;
    problem.n = 32;
    problem.k = 9;
    create(&cpu, NULL);
    cr_assert_str_eq(plan.variant, "mxu_grouped");
    cr_assert(has_declined("mxu_register: it does not take groups of channels"));
    cr_assert(strstr(plan.launches[0].options, "-DCONV_GROUPS=32") != NULL);
    cr_assert(plan.launches[0].global[0] == 2 && plan.launches[0].global[1] == 16);
    create(&gpu, NULL);
    cr_assert(plan.launches[0].global[0] == 32);
    problem.conv.groups = 5;
    expect_refused(TPUCL_INVALID_ARGUMENT, "5 groups do not divide 32 and 32 channels");
    problem.conv.groups = 4;
    expect_refused(TPUCL_INVALID_ARGUMENT, "expected 128, 32, 72");
}
