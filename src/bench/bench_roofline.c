/* SPDX-License-Identifier: Apache-2.0
 * The roofline as a suite of its own: the device's probes beside plain C on the host, where the device is the
 * host's processor. Peaks that disagree by more than a tenth are worth a note: no share of such a peak means
 * anything before it is understood. */
#include <math.h>
#include <stdio.h>
#include "bench/bench_internal.h"
#include "bench/host_probe.h"

enum { RUNS = 25, QUICK_RUNS = 5 };

tpucl_status tp_bench_get_roofline(tp_bench *bench, const tp_roofline **out_roofline)
{
    tp_bench_report *report = bench->report;
    *out_roofline = &report->roofline;
    if (report->roofline.multiply_add_flops > 0) return TPUCL_OK;
    tp_bench_progress(bench, "probes of the roofline", 0, 1);
    return tp_roofline_measure(report->device, bench->options->quick, &report->roofline);
}

static tpucl_status add_rate(tp_bench *bench, const char *name, const char *side, double rate,
                             const char *unit, const char *note)
{
    const tp_bench_row row = {
        .name = name, .side = side, .value = rate * 1e-9, .unit = unit, .note = note};
    return tp_bench_add_row(bench, &row);
}

/* Beside the device's rate, unless this host has no such probe. */
static tpucl_status compare(tp_bench *bench, const char *name, double device_rate, const char *unit,
                            tp_host_probe probe)
{
    const tp_roofline *roofline = &bench->report->roofline;
    const int runs = bench->options->quick ? QUICK_RUNS : RUNS;
    char text[256];
    double host_rate;
    if (tp_device_get_caps(bench->report->device)->type != TP_DEVICE_CPU ||
        !tp_host_probe_is_available(probe))
        return TPUCL_OK;
    TP_TRY(tp_host_probe_run(probe, (size_t)roofline->buffer_bytes, runs, &host_rate));
    TP_TRY(
        add_rate(bench, name, "host, C", host_rate, unit, probe == TP_HOST_COPY ? "memcpy" : NULL));
    TP_TRY(tp_bench_add_ratio(bench, device_rate / host_rate, "device / host, %s", name));
    if (fabs(device_rate / host_rate - 1) <= 0.1) return TPUCL_OK;
    snprintf(text, sizeof text,
             "%s: the device's probe gives %.3g %s, plain C on the host %.3g; they should agree: "
             "is the machine busy, or are shares of the roofline not to be trusted here?",
             name, device_rate * 1e-9, unit, host_rate * 1e-9);
    return tp_bench_add_note(bench, text);
}

tpucl_status tp_bench_roofline(tp_bench *bench)
{
    const tp_roofline *r;
    char note[64];
    TP_TRY(tp_bench_get_roofline(bench, &r));
    const char *sums = "multiply-adds f32", *pairs = "multiply-adds bf16 pairs";
    TP_TRY(add_rate(bench, sums, "device", r->multiply_add_flops, "GFLOP/s", NULL));
    TP_TRY(compare(bench, sums, r->multiply_add_flops, "GFLOP/s", TP_HOST_MULTIPLY_ADDS));
    if (r->pair_flops > 0) {
        TP_TRY(add_rate(bench, pairs, "device", r->pair_flops, "GFLOP/s", "AVX512_BF16"));
        TP_TRY(compare(bench, pairs, r->pair_flops, "GFLOP/s", TP_HOST_PAIRS));
    }
    snprintf(note, sizeof note, "%llu MiB, read and written",
             (unsigned long long)(r->buffer_bytes >> 20));
    TP_TRY(add_rate(bench, "copy", "device", r->copy_bytes, "GB/s", note));
    TP_TRY(add_rate(bench, "copy", "device, driver's copy", r->driver_copy_bytes, "GB/s", note));
    TP_TRY(compare(bench, "copy", r->copy_bytes, "GB/s", TP_HOST_COPY));
    TP_TRY(add_rate(bench, "triad", "device", r->triad_bytes, "GB/s", note));
    TP_TRY(compare(bench, "triad", r->triad_bytes, "GB/s", TP_HOST_TRIAD));
    return add_rate(bench, "copy, in cache", "device", r->cached_copy_bytes, "GB/s", NULL);
}
