/* SPDX-License-Identifier: Apache-2.0
 * Convolutions with a group for each channel, on the CPU: no product of matrices, so no BLAS, but loops over the
 * channels of a pixel, which compilers turn into vectors.
 */
#include <string.h>
#include "baseline/cpu_internal.h"

typedef struct depthwise {
    const tp_conv_geometry *g;
    const float *first, *second; /* x, w; or dy, w; or x, dy */
    float *out;
} depthwise;

static void multiply_add(float *sums, const float *a, const float *b, int64_t count)
{
    for (int64_t c = 0; c < count; c++)
        sums[c] += a[c] * b[c];
}

/* Lines of the result. */
static tpucl_status forward(void *user, size_t begin, size_t end, int worker)
{
    const depthwise *d = user;
    const tp_conv_geometry *g = d->g;
    const int64_t channels = g->in_c;
    (void)worker;
    for (int64_t line = (int64_t)begin; line < (int64_t)end; line++) {
        const float *image = d->first + line / g->out_h * g->in_h * g->in_w * channels;
        float *to = d->out + line * g->out_w * channels;
        memset(to, 0, (size_t)(g->out_w * channels) * sizeof *to);
        for (int64_t ox = 0; ox < g->out_w; ox++)
            for (int64_t ky = 0; ky < g->kernel_h; ky++)
                for (int64_t kx = 0; kx < g->kernel_w; kx++) {
                    const int64_t pixel = tp_cpu_pixel_at(g, line % g->out_h, ox, ky, kx);
                    if (pixel < 0) continue;
                    multiply_add(to + ox * channels, image + pixel * channels,
                                 d->second + (ky * g->kernel_w + kx) * channels, channels);
                }
    }
    return TPUCL_OK;
}

/* Images of the result. */
static tpucl_status input_grad(void *user, size_t begin, size_t end, int worker)
{
    const depthwise *d = user;
    const tp_conv_geometry *g = d->g;
    const int64_t channels = g->in_c, pixels = g->out_h * g->out_w;
    (void)worker;
    for (int64_t image = (int64_t)begin; image < (int64_t)end; image++) {
        float *sums = d->out + image * g->in_h * g->in_w * channels;
        memset(sums, 0, (size_t)(g->in_h * g->in_w * channels) * sizeof *sums);
        for (int64_t at = 0; at < pixels; at++)
            for (int64_t ky = 0; ky < g->kernel_h; ky++)
                for (int64_t kx = 0; kx < g->kernel_w; kx++) {
                    const int64_t pixel = tp_cpu_pixel_at(g, at / g->out_w, at % g->out_w, ky, kx);
                    if (pixel < 0) continue;
                    multiply_add(sums + pixel * channels,
                                 d->first + (image * pixels + at) * channels,
                                 d->second + (ky * g->kernel_w + kx) * channels, channels);
                }
    }
    return TPUCL_OK;
}

/* Cells of the filter. */
static tpucl_status filter_grad(void *user, size_t begin, size_t end, int worker)
{
    const depthwise *d = user;
    const tp_conv_geometry *g = d->g;
    const int64_t channels = g->in_c, pixels = g->out_h * g->out_w;
    (void)worker;
    for (int64_t cell = (int64_t)begin; cell < (int64_t)end; cell++) {
        const int64_t ky = cell / g->kernel_w, kx = cell % g->kernel_w;
        float *sums = d->out + cell * channels;
        memset(sums, 0, (size_t)channels * sizeof *sums);
        for (int64_t at = 0; at < g->images * pixels; at++) {
            const float *image = d->first + at / pixels * g->in_h * g->in_w * channels;
            const int64_t pixel = tp_cpu_pixel_at(g, at % pixels / g->out_w, at % g->out_w, ky, kx);
            if (pixel < 0) continue;
            multiply_add(sums, image + pixel * channels, d->second + at * channels, channels);
        }
    }
    return TPUCL_OK;
}

bool tp_cpu_is_depthwise(const tp_conv_geometry *g)
{
    return g->groups > 1 && g->in_c == g->groups && g->out_c == g->groups;
}

tpucl_status tp_cpu_run_depthwise(tp_cpu_runner *runner, const tp_conv_geometry *g,
                                  tp_conv_kind kind, const float *first, const float *second,
                                  float *out)
{
    depthwise d = {g, first, second, out};
    if (kind == TP_CONV_FORWARD)
        return tp_pool_parallel_for(runner->pool, (size_t)(g->images * g->out_h), 4, forward, &d);
    if (kind == TP_CONV_INPUT_GRAD)
        return tp_pool_parallel_for(runner->pool, (size_t)g->images, 1, input_grad, &d);
    return tp_pool_parallel_for(runner->pool, (size_t)(g->kernel_h * g->kernel_w), 1, filter_grad,
                                &d);
}
