/* SPDX-License-Identifier: Apache-2.0
 * Host bits equal device bits: every function of num/exact_math.h, num/philox.h and kernels/lib,
 * scalar and float16, on every OpenCL device of this machine, over stratified inputs. Division and
 * square root are built twice, with the device's own (where it promises correct ones) and with the
 * integer correction. Raw OpenCL, so that this test depends on the number layer alone.
 */
#include <CL/cl.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "num/bf16.h"
#include "num/philox.h"
#include "num_inputs.h"

#define PER_STRATUM 32
#define COUNT (512 * PER_STRATUM)

typedef struct cl_rig {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    char name[256];
} cl_rig;

static void build(cl_rig *rig, bool correct_divide)
{
    const char *text = "#include \"device_math.cl\"\n";
    cl_int code;
    rig->program = clCreateProgramWithSource(rig->context, 1, &text, NULL, &code);
    cr_assert_eq(code, CL_SUCCESS);
    char options[2048];
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -I %s/kernels -I %s/src -I %s/tests/unit/num%s%s", TPUCL_SOURCE_DIR,
             TPUCL_SOURCE_DIR, TPUCL_SOURCE_DIR,
             correct_divide ? " -cl-fp32-correctly-rounded-divide-sqrt -DTP_CORRECT_DIVIDE" : "",
             strstr(rig->name, "Oclgrind") != NULL ? " -cl-opt-disable" : ""); /* device/quirks.c */
    code = clBuildProgram(rig->program, 1, &rig->device, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        static char log[8192];
        clGetProgramBuildInfo(rig->program, rig->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                              NULL);
        cr_assert_fail("build failed (%d): %.4000s", code, log);
    }
}

/* Runs `test` once for each device and each way to divide that it has. */
static void on_every_device(void (*test)(cl_rig *rig))
{
    cl_platform_id platforms[16];
    cl_uint platform_count = 0;
    int runs = 0;
    clGetPlatformIDs(16, platforms, &platform_count);
    for (cl_uint p = 0; p < platform_count && p < 16; p++) {
        cl_device_id devices[16];
        cl_uint device_count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &device_count) !=
            CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < device_count && d < 16; d++) {
            cl_rig rig = {.device = devices[d]};
            cl_device_fp_config config = 0;
            clGetDeviceInfo(rig.device, CL_DEVICE_NAME, sizeof rig.name, rig.name, NULL);
            clGetDeviceInfo(rig.device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
            rig.context = clCreateContext(NULL, 1, &rig.device, NULL, NULL, NULL);
            rig.queue = clCreateCommandQueue(rig.context, rig.device, 0, NULL);
            cr_assert(rig.context != NULL && rig.queue != NULL);
            const bool has_correct = (config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
            for (int correct = has_correct ? 1 : 0; correct >= 0; correct--) {
                build(&rig, correct != 0);
                test(&rig);
                clReleaseProgram(rig.program);
                runs++;
            }
            clReleaseCommandQueue(rig.queue);
            clReleaseContext(rig.context);
        }
    }
    cr_assert_gt(runs, 0,
                 "no OpenCL device: install pocl-opencl-icd, or deselect the label 'device'");
}

static cl_mem upload(cl_rig *rig, const void *data, size_t bytes)
{
    cl_int code;
    cl_mem buffer = clCreateBuffer(rig->context, CL_MEM_COPY_HOST_PTR, bytes, (void *)data, &code);
    cr_assert_eq(code, CL_SUCCESS);
    return buffer;
}

/* Runs NAME_1 or NAME_16 over COUNT elements: one or two inputs of 4 bytes, one output. */
static void run(cl_rig *rig, const char *name, int width, const void *x, const void *y, void *out,
                size_t out_bytes)
{
    char entry[64];
    snprintf(entry, sizeof entry, "%s_%d", name, width);
    cl_int code;
    cl_kernel kernel = clCreateKernel(rig->program, entry, &code);
    cr_assert_eq(code, CL_SUCCESS, "no kernel '%s' (%d)", entry, code);
    memset(out, 0xa5, COUNT * out_bytes);
    cl_mem buffers[3];
    cl_uint count = 0;
    buffers[count++] = upload(rig, x, COUNT * 4);
    if (y != NULL) buffers[count++] = upload(rig, y, COUNT * 4);
    buffers[count++] = upload(rig, out, COUNT * out_bytes);
    for (cl_uint i = 0; i < count; i++)
        clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[i]);
    const size_t global = COUNT / (size_t)width;
    cr_assert_eq(clEnqueueNDRangeKernel(rig->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
                 CL_SUCCESS);
    cr_assert_eq(clEnqueueReadBuffer(rig->queue, buffers[count - 1], CL_TRUE, 0, COUNT * out_bytes,
                                     out, 0, NULL, NULL),
                 CL_SUCCESS);
    for (cl_uint i = 0; i < count; i++)
        clReleaseMemObject(buffers[i]);
    clReleaseKernel(kernel);
}

static bool same_f32(uint32_t a, uint32_t b)
{
    return a == b || ((a & 0x7fffffffu) > 0x7f800000u && (b & 0x7fffffffu) > 0x7f800000u);
}

static void expect_f32(cl_rig *rig, const char *name, int width, const float *x, const float *y,
                       const float *want, const float *got)
{
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < COUNT; i++)
        if (!same_f32(tp_f32_bits(want[i]), tp_f32_bits(got[i])) && wrong++ == 0) first = i;
    cr_expect_eq(wrong, 0, "%s_%d on '%s': %zu of %d differ, first (%a, %a): host %a, device %a",
                 name, width, rig->name, wrong, COUNT, (double)x[first],
                 y == NULL ? 0.0 : (double)y[first], (double)want[first], (double)got[first]);
}

static const struct {
    const char *name;
    float (*function)(float);
} unary[] = {
    {"exp", tp_math_exp},
    {"expm1", tp_math_expm1},
    {"log", tp_math_log},
    {"log1p", tp_math_log1p},
    {"tanh", tp_math_tanh},
    {"logistic", tp_math_logistic},
    {"erf", tp_math_erf},
    {"sqrt", tp_math_sqrt},
    {"rsqrt", tp_math_rsqrt},
    {"cbrt", tp_math_cbrt},
    {"sin", tp_math_sin},
    {"cos", tp_math_cos},
    {"flush", tp_flush},
    {"sign", tp_vpu_sign},
    {"floor", tp_vpu_floor},
    {"ceil", tp_vpu_ceil},
    {"round", tp_vpu_round_nearest_even},
    {"bf16_round", tp_bf16_round},
};

static float multiply_add(float a, float b)
{
    return a * b + a;
}

static const struct {
    const char *name;
    float (*function)(float, float);
} binary[] = {
    {"divide", tp_math_divide},
    {"pow", tp_math_pow},
    {"max", tp_vpu_max},
    {"min", tp_vpu_min},
    {"remainder", tp_vpu_remainder},
    {"multiply_add", multiply_add},
};

static float x[COUNT], y[COUNT], want[COUNT], got[COUNT];

static void check_unary(cl_rig *rig)
{
    num_stratified(x, PER_STRATUM, 1);
    for (size_t f = 0; f < sizeof unary / sizeof unary[0]; f++) {
        for (size_t i = 0; i < COUNT; i++)
            want[i] = unary[f].function(x[i]);
        for (int width = 1; width <= 16; width += 15) {
            run(rig, unary[f].name, width, x, NULL, got, sizeof(float));
            expect_f32(rig, unary[f].name, width, x, NULL, want, got);
        }
    }
}

static void check_binary(cl_rig *rig)
{
    for (int round = 0; round < 3; round++) {
        num_stratified(x, PER_STRATUM, 2 + (uint64_t)round);
        num_stratified(y, PER_STRATUM, 12 + (uint64_t)round);
        if (round > 0) num_shuffle(y, COUNT, 22 + (uint64_t)round);
        if (round > 1) /* results of ordinary size */
            for (size_t i = 0; i < COUNT; i++) {
                x[i] = tp_f32_from_bits((tp_f32_bits(x[i]) & 0x81ffffffu) | 0x3e000000u);
                y[i] = tp_f32_from_bits((tp_f32_bits(y[i]) & 0x81ffffffu) | 0x3e000000u);
            }
        for (size_t f = 0; f < sizeof binary / sizeof binary[0]; f++) {
            for (size_t i = 0; i < COUNT; i++)
                want[i] = binary[f].function(x[i], y[i]);
            for (int width = 1; width <= 16; width += 15) {
                run(rig, binary[f].name, width, x, y, got, sizeof(float));
                expect_f32(rig, binary[f].name, width, x, y, want, got);
            }
        }
    }
}

/* Conversions between types; `differ` counts elements. */
static void check_conversions(cl_rig *rig)
{
    static uint32_t integers[COUNT], got_bits[COUNT];
    static uint16_t halves[COUNT];
    num_stratified(x, PER_STRATUM, 5);
    memcpy(integers, x, sizeof integers);
    for (int width = 1; width <= 16; width += 15) {
        size_t s32 = 0, u32 = 0, u8 = 0, finite = 0, bf16 = 0, from_s32 = 0, from_u32 = 0;
        run(rig, "s32", width, x, NULL, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            s32 += got_bits[i] != (uint32_t)tp_vpu_s32_from_f32(x[i]);
        run(rig, "u32", width, x, NULL, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            u32 += got_bits[i] != tp_vpu_u32_from_f32(x[i]);
        run(rig, "u8", width, x, NULL, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            u8 += got_bits[i] != tp_vpu_u8_from_f32(x[i]);
        run(rig, "is_finite", width, x, NULL, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            finite += (got_bits[i] != 0) != (isfinite(x[i]) != 0);
        run(rig, "bf16", width, x, NULL, halves, 2);
        for (size_t i = 0; i < COUNT; i++)
            bf16 += halves[i] != tp_bf16_from_f32(x[i]);
        run(rig, "from_s32", width, integers, NULL, got, 4);
        for (size_t i = 0; i < COUNT; i++)
            from_s32 += got[i] != (float)(int32_t)integers[i];
        run(rig, "from_u32", width, integers, NULL, got, 4);
        for (size_t i = 0; i < COUNT; i++)
            from_u32 += got[i] != (float)integers[i];
        cr_expect_eq(
            s32 + u32 + u8 + finite + bf16 + from_s32 + from_u32, 0,
            "width %d on '%s': s32 %zu, u32 %zu, u8 %zu, is_finite %zu, bf16 %zu, from_s32 %zu, "
            "from_u32 %zu differ",
            width, rig->name, s32, u32, u8, finite, bf16, from_s32, from_u32);
    }
}

static void check_integers(cl_rig *rig)
{
    static uint32_t a[COUNT], b[COUNT], got_bits[COUNT];
    static const uint32_t ends[] = {0, 1, 2, 7, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
    uint64_t seed = 9;
    for (size_t i = 0; i < COUNT; i++) {
        a[i] = i < 64 ? ends[i % 8] : (uint32_t)num_next(&seed) >> (i % 32);
        b[i] = i < 64 ? ends[i / 8] : (uint32_t)num_next(&seed) >> (i / 32 % 32);
    }
    for (int width = 1; width <= 16; width += 15) {
        size_t wrong = 0;
        run(rig, "s32_divide", width, a, b, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            wrong += got_bits[i] != (uint32_t)tp_vpu_s32_divide((int32_t)a[i], (int32_t)b[i]);
        run(rig, "s32_remainder", width, a, b, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            wrong += got_bits[i] != (uint32_t)tp_vpu_s32_remainder((int32_t)a[i], (int32_t)b[i]);
        run(rig, "u32_divide", width, a, b, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            wrong += got_bits[i] != tp_vpu_u32_divide(a[i], b[i]);
        run(rig, "u32_remainder", width, a, b, got_bits, 4);
        for (size_t i = 0; i < COUNT; i++)
            wrong += got_bits[i] != tp_vpu_u32_remainder(a[i], b[i]);
        cr_expect_eq(wrong, 0, "integer division, width %d on '%s': %zu differ", width, rig->name,
                     wrong);
    }
}

static void check_random(cl_rig *rig)
{
    static uint32_t bits[COUNT];
    static float uniform[COUNT], normal[COUNT];
    const cl_ulong seed = 0x123456789abcdef0u;
    const cl_uint op = 7, core = 3, step = 1000001;
    const tp_random_stream stream =
        tp_random_stream_make((uint32_t)seed, (uint32_t)(seed >> 32), op, core, step);
    for (int width = 1; width <= 16; width += 15) {
        cl_kernel kernel =
            clCreateKernel(rig->program, width == 1 ? "random_1" : "random_16", NULL);
        cl_mem buffers[3] = {upload(rig, bits, sizeof bits), upload(rig, uniform, sizeof uniform),
                             upload(rig, normal, sizeof normal)};
        clSetKernelArg(kernel, 0, sizeof seed, &seed);
        clSetKernelArg(kernel, 1, sizeof op, &op);
        clSetKernelArg(kernel, 2, sizeof core, &core);
        clSetKernelArg(kernel, 3, sizeof step, &step);
        for (cl_uint i = 0; i < 3; i++)
            clSetKernelArg(kernel, 4 + i, sizeof(cl_mem), &buffers[i]);
        const size_t global = COUNT / (size_t)width;
        cr_assert_eq(
            clEnqueueNDRangeKernel(rig->queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
            CL_SUCCESS);
        clEnqueueReadBuffer(rig->queue, buffers[0], CL_TRUE, 0, sizeof bits, bits, 0, NULL, NULL);
        clEnqueueReadBuffer(rig->queue, buffers[1], CL_TRUE, 0, sizeof uniform, uniform, 0, NULL,
                            NULL);
        clEnqueueReadBuffer(rig->queue, buffers[2], CL_TRUE, 0, sizeof normal, normal, 0, NULL,
                            NULL);
        size_t wrong = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            wrong += bits[i] != tp_random_bits(stream, i / 4, i % 4);
            wrong += uniform[i] != tp_random_uniform(stream, i / 4, i % 4);
            wrong += normal[i] != tp_random_normal(stream, i / 4, i % 4);
        }
        cr_expect_eq(wrong, 0, "random_%d on '%s': %zu differ", width, rig->name, wrong);
        for (int i = 0; i < 3; i++)
            clReleaseMemObject(buffers[i]);
        clReleaseKernel(kernel);
    }
}

Test(device_math, unary_functions_have_the_hosts_bits)
{
    on_every_device(check_unary);
}

Test(device_math, binary_functions_have_the_hosts_bits)
{
    on_every_device(check_binary);
}

Test(device_math, conversions_and_integers_have_the_hosts_bits)
{
    on_every_device(check_conversions);
    on_every_device(check_integers);
}

Test(device_math, random_numbers_have_the_hosts_bits)
{
    on_every_device(check_random);
}
