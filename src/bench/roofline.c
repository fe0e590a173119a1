/* SPDX-License-Identifier: Apache-2.0
 * Probes of the device: kernels/probe. */
#include "bench/roofline.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/clock.h"
#include "device/buffer.h"
#include "device/launch.h"
#include "kernel/source.h"

enum { STEPS = 16384, ACCUMULATORS = 12, RUNS = 25, QUICK_RUNS = 5 };
#define COPY_BYTES ((uint64_t)128 << 20)
#define QUICK_COPY_BYTES ((uint64_t)32 << 20)
#define CACHED_BYTES ((uint64_t)192 << 10) /* both operands of a core's part: half of 384 KiB */
static const float factor = 0.5f;

typedef struct probe {
    tp_device *device;
    tp_arena *arena;
    tp_device_program *program;
    tp_device_kernel *kernel;
    tp_buffer *buffers[3];
    uint32_t argument;
} probe;

static bool is_cpu(const tp_device *device)
{
    return tp_device_get_caps(device)->type == TP_DEVICE_CPU;
}

/* The widest that the kernels have and the device prefers. */
static int lanes_of(const tp_device *device)
{
    const uint32_t native = tp_device_get_caps(device)->preferred_float_vector;
    return native >= 16 ? 16 : native >= 8 ? 8 : native >= 4 ? 4 : 1;
}

static void probe_close(probe *p)
{
    tp_device_kernel_destroy(p->kernel);
    tp_device_program_release(p->program);
    for (int i = 0; i < 3; i++)
        tp_buffer_release(p->buffers[i]);
    tp_arena_destroy(p->arena);
}

static tpucl_status probe_open(tp_device *device, const char *file, const char *entry, int lanes,
                               bool uses_pairs, probe *out)
{
    const char *text;
    char options[64];
    *out = (probe){.device = device};
    TP_TRY(tp_arena_create(0, &out->arena));
    TP_TRY(tp_kernel_source_find(file, out->arena, &text));
    TP_TRY(tp_kernel_source_expand(text, out->arena, &text));
    snprintf(options, sizeof options, "-DFLOATS=%d -DPAIRS=%d", lanes, uses_pairs);
    const tp_device_program_source source = {.label = file, .source = text, .options = options};
    TP_TRY(tp_device_program_build(device, &source, &out->program));
    return tp_device_kernel_create(out->program, entry, &out->kernel);
}

static tpucl_status add_bytes(probe *p, const void *value, size_t bytes)
{
    return tp_device_kernel_set_bytes(p->kernel, p->argument++, value, bytes);
}

static tpucl_status add_tensor(probe *p, tp_buffer *buffer)
{
    const uint64_t zero = 0;
    TP_TRY(tp_device_kernel_set_buffer(p->kernel, p->argument++, buffer));
    TP_TRY(add_bytes(p, &zero, sizeof zero));
    return add_bytes(p, &zero, sizeof zero);
}

/* The best of `runs` after a first one that warms. */
static tpucl_status best_seconds(probe *p, size_t items, size_t local, int runs, int repeats,
                                 double *out_seconds)
{
    const size_t global_size[3] = {items, 1, 1}, local_size[3] = {local, 1, 1};
    *out_seconds = 0;
    for (int run = -1; run < runs; run++) {
        const uint64_t begin_ns = tp_clock_now_ns();
        for (int i = 0; i < repeats; i++)
            TP_TRY(tp_device_kernel_enqueue(p->kernel, global_size, local_size, NULL, 0, NULL));
        TP_TRY(tp_lane_finish(p->device, TP_LANE_COMPUTE));
        const double seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns) / repeats;
        if (run >= 0 && (*out_seconds == 0 || seconds < *out_seconds)) *out_seconds = seconds;
    }
    return TPUCL_OK;
}

/* ---- multiply-adds ---- */

static tpucl_status check_sums(const probe *p, size_t items, int lanes, int growth)
{
    float *sums = TP_NEW_ARRAY(float, items);
    if (!sums) return TPUCL_OUT_OF_MEMORY;
    const float wanted =
        (float)(lanes * (ACCUMULATORS * (ACCUMULATORS - 1) / 2 + ACCUMULATORS * growth * STEPS));
    tpucl_status status = tp_buffer_read(p->buffers[0], 0, sums, items * sizeof(float));
    for (size_t i = 0; status == TPUCL_OK && i < items; i++)
        if (sums[i] != wanted)
            status = TP_FAIL(TPUCL_NOT_EXACT,
                             "the probe of multiply-adds gives %.9g in work-item %zu, expected "
                             "%.9g: the compiler has changed its work",
                             (double)sums[i], i, (double)wanted);
    tp_free(sums);
    return status;
}

static tpucl_status measure_flops(tp_device *device, bool uses_pairs, int runs, double *out_flops)
{
    const int lanes = uses_pairs ? 16 : lanes_of(device), growth = uses_pairs ? 2 : 1;
    const uint32_t units = tp_device_get_caps(device)->compute_units, steps = STEPS;
    const size_t items = (size_t)units * (is_cpu(device) ? 32 : 2048);
    const uint32_t pair_bits = 0x3f803f80; /* 1.0 in bf16, twice */
    float one = 1.0f;
    const float first = 0.0f;
    double seconds;
    probe p;
    if (uses_pairs) memcpy(&one, &pair_bits, sizeof one);
    tpucl_status status;
    TP_TRY_GOTO(
        status,
        probe_open(device, "probe/multiply_adds.cl", "multiply_adds", lanes, uses_pairs, &p), done);
    TP_TRY_GOTO(status, tp_buffer_create(device, items * sizeof(float), "sums", &p.buffers[0]),
                done);
    TP_TRY_GOTO(status, add_tensor(&p, p.buffers[0]), done);
    TP_TRY_GOTO(status, add_bytes(&p, &one, sizeof one), done);
    TP_TRY_GOTO(status, add_bytes(&p, &first, sizeof first), done);
    TP_TRY_GOTO(status, add_bytes(&p, &steps, sizeof steps), done);
    TP_TRY_GOTO(status, best_seconds(&p, items, is_cpu(device) ? 1 : 64, runs, 1, &seconds), done);
    TP_TRY_GOTO(status, check_sums(&p, items, lanes, growth), done);
    *out_flops = 2.0 * growth * ACCUMULATORS * lanes * STEPS * (double)items / seconds;
done:
    probe_close(&p);
    return status;
}

/* ---- memory ---- */

/* 1, 2, 3 ... in a, twice that in b; spot checks, because reading all would take longer than copying. */
static tpucl_status fill_operands(probe *p, uint64_t bytes)
{
    const size_t piece = 1 << 16;
    float *values = TP_NEW_ARRAY(float, piece);
    if (!values) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = TPUCL_OK;
    for (int operand = 0; operand < 2; operand++) {
        for (size_t i = 0; i < piece; i++)
            values[i] = (float)((i + 1) << operand);
        for (uint64_t at = 0; status == TPUCL_OK && at < bytes; at += piece * sizeof(float)) {
            const uint64_t left = bytes - at, most = piece * sizeof(float);
            status = tp_buffer_write(p->buffers[operand], at, values, left < most ? left : most);
        }
    }
    tp_free(values);
    return status;
}

static tpucl_status check_copy(const probe *p, uint64_t bytes, bool is_triad)
{
    const size_t piece = 1 << 16, count = bytes / sizeof(float);
    for (size_t spot = 0; spot < 64; spot++) {
        const size_t at = spot < 63 ? count / 63 * spot : count - 1;
        const float base = (float)(at % piece + 1);
        const float wanted = is_triad ? base + factor * 2 * base : base;
        float found;
        TP_TRY(tp_buffer_read(p->buffers[2], at * sizeof(float), &found, sizeof found));
        if (found != wanted)
            return TP_FAIL(TPUCL_NOT_EXACT,
                           "the probe of memory gives %.9g in element %zu, expected %.9g",
                           (double)found, at, (double)wanted);
    }
    return TPUCL_OK;
}

static tpucl_status bind_stream(probe *p, bool is_triad, uint64_t bytes, int lanes, size_t items)
{
    const uint64_t count = bytes / sizeof(float) / (uint64_t)lanes / items;
    const uint64_t chunk = is_cpu(p->device) ? count : 1;
    const uint64_t stride = is_cpu(p->device) ? 1 : items;
    TP_TRY(add_tensor(p, p->buffers[0]));
    if (is_triad) TP_TRY(add_tensor(p, p->buffers[1]));
    TP_TRY(add_tensor(p, p->buffers[2]));
    if (is_triad) TP_TRY(add_bytes(p, &factor, sizeof factor));
    TP_TRY(add_bytes(p, &count, sizeof count));
    TP_TRY(add_bytes(p, &chunk, sizeof chunk));
    return add_bytes(p, &stride, sizeof stride);
}

static tpucl_status driver_copy_seconds(probe *p, uint64_t bytes, int runs, double *out_seconds)
{
    *out_seconds = 0;
    for (int run = -1; run < runs; run++) {
        const uint64_t begin_ns = tp_clock_now_ns();
        TP_TRY(tp_buffer_copy(p->buffers[0], 0, p->buffers[2], 0, bytes, TP_LANE_COMPUTE, NULL, 0,
                              NULL));
        TP_TRY(tp_lane_finish(p->device, TP_LANE_COMPUTE));
        const double seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
        if (run >= 0 && (*out_seconds == 0 || seconds < *out_seconds)) *out_seconds = seconds;
    }
    return TPUCL_OK;
}

/* `bytes` is rounded down to what the work-items share evenly. out_driver may be NULL. */
static tpucl_status measure_stream(tp_device *device, bool is_triad, uint64_t bytes, int runs,
                                   double *out_rate, double *out_driver)
{
    const int lanes = lanes_of(device);
    const uint32_t units = tp_device_get_caps(device)->compute_units;
    const bool is_small = bytes < COPY_BYTES / 8; /* one part per core, again and again */
    const size_t items = (size_t)units * (is_cpu(device) ? (is_small ? 1 : 8) : 2048);
    const int repeats = is_small ? 100 : 1;
    double seconds, driver_seconds;
    probe p;
    bytes -= bytes % (items * (size_t)lanes * sizeof(float));
    tpucl_status status;
    TP_TRY_GOTO(
        status,
        probe_open(device, "probe/stream.cl", is_triad ? "triad" : "copy", lanes, false, &p), done);
    for (int i = 0; i < 3; i++)
        TP_TRY_GOTO(status, tp_buffer_create(device, bytes, "stream", &p.buffers[i]), done);
    TP_TRY_GOTO(status, fill_operands(&p, bytes), done);
    TP_TRY_GOTO(status, bind_stream(&p, is_triad, bytes, lanes, items), done);
    TP_TRY_GOTO(status, best_seconds(&p, items, is_cpu(device) ? 1 : 64, runs, repeats, &seconds),
                done);
    TP_TRY_GOTO(status, check_copy(&p, bytes, is_triad), done);
    *out_rate = (is_triad ? 3.0 : 2.0) * (double)bytes / seconds;
    if (out_driver) {
        TP_TRY_GOTO(status, driver_copy_seconds(&p, bytes, runs, &driver_seconds), done);
        *out_driver = 2.0 * (double)bytes / driver_seconds;
    }
done:
    probe_close(&p);
    return status;
}

tpucl_status tp_roofline_measure(tp_device *device, bool is_quick, tp_roofline *out_roofline)
{
    const tp_device_caps *caps = tp_device_get_caps(device);
    const int runs = is_quick ? QUICK_RUNS : RUNS;
    uint64_t bytes = is_quick ? QUICK_COPY_BYTES : COPY_BYTES;
    tp_roofline *r = out_roofline;
    *r = (tp_roofline){0};
    if (!is_quick && bytes < 4 * caps->cache_bytes) bytes = 4 * caps->cache_bytes;
    if (bytes > caps->max_allocation_bytes) bytes = caps->max_allocation_bytes;
    if (bytes > caps->memory_bytes / 8) bytes = caps->memory_bytes / 8;
    r->buffer_bytes = bytes;
    TP_TRY(measure_flops(device, false, runs, &r->multiply_add_flops));
    if (caps->has_bf16_pairs) TP_TRY(measure_flops(device, true, runs, &r->pair_flops));
    TP_TRY(measure_stream(device, false, bytes, runs, &r->copy_bytes, &r->driver_copy_bytes));
    TP_TRY(measure_stream(device, true, bytes, runs, &r->triad_bytes, NULL));
    return measure_stream(device, false, CACHED_BYTES * caps->compute_units, runs,
                          &r->cached_copy_bytes, NULL);
}

double tp_roofline_seconds(const tp_roofline *roofline, double flops, double bytes, bool is_bf16)
{
    const double peak = is_bf16 && roofline->pair_flops > roofline->multiply_add_flops
                            ? roofline->pair_flops
                            : roofline->multiply_add_flops;
    const double copy = roofline->driver_copy_bytes > roofline->copy_bytes
                            ? roofline->driver_copy_bytes
                            : roofline->copy_bytes;
    const double compute_seconds = flops / peak, memory_seconds = bytes / copy;
    return compute_seconds > memory_seconds ? compute_seconds : memory_seconds;
}
