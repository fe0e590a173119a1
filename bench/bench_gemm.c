/* SPDX-License-Identifier: Apache-2.0
 * Developer bench of products: tpucl bf16 and f32 (packing included), CLBlast, OpenBLAS; square
 * sizes, the small ones of one training core (eight cores in a wave), convolutions and their
 * gradients, the layers of ResNet-50, gradients of weights summed over the cores of a wave.
 *
 *   bench_gemm [square] [small] [conv] [resnet] [cores] [--problem LINE] [--variant NAME]
 *              [--rounds N] [--no-clblast] [--only TEXT] [--cpu-time]
 *
 * --problem is a product as in bench/problems; --variant does it by one variant of the catalogue.
 *
 * --cpu-time counts processor seconds of all threads instead of the wall clock's: GFLOP/s are then
 * those of one processor core, hardly disturbed by other work on the machine. OpenBLAS uses one
 * thread, its idle threads spin.
 *
 * The sides take turns and medians are shown, because other work on the machine comes and goes.
 * OpenBLAS picks its kernels by processor name and can be off by a factor of ten on new ones: every
 * core type is tried in a process of its own, and this one starts itself again with the fastest.
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "device/clblast.h"
#include "tune/problem_line.h"
#include "tune/product_timer.h"

#define MAX_ROUNDS 101

char *openblas_get_corename(void); /* not declared by every cblas.h */

typedef struct options {
    bool square, small, conv, resnet, cores, clblast, cpu_time;
    const char *only, *problem, *variant; /* variant: in place of the catalogue's choice */
    int rounds;
} options;

static void check(tpucl_status status)
{
    if (status == TPUCL_OK) return;
    fprintf(stderr, "%s: %s\n", tpucl_status_name(status), tpucl_last_error()->message);
    exit(1);
}

static bool use_cpu_time;

static double now(void)
{
    struct timespec time;
    clock_gettime(use_cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- OpenBLAS ---- */

static double time_blas(int m, int n, int k, const float *a, const float *b, float *c)
{
    const double start = now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n);
    return now() - start;
}

static float *random_floats(size_t count)
{
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(rand() % 2001 - 1000) / 1000.0f;
    return values;
}

/* Prints the best of a few runs: the child's side of choose_core_type. */
static int probe_blas(void)
{
    const int size = 1024;
    const size_t count = (size_t)size * (size_t)size;
    float *a = random_floats(count), *b = random_floats(count), *c = random_floats(count);
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        const double seconds = time_blas(size, size, size, a, b, c);
        if (i > 0 && seconds < best) best = seconds;
    }
    printf("%.9f %s\n", best, openblas_get_corename());
    free(a), free(b), free(c);
    return 0;
}

static void choose_core_type(char **argv)
{
    static const char *const types[] = {"", "SkylakeX", "Cooperlake", "Haswell", "Zen"};
    const char *best_type = "";
    double best = 1e9;
    if (getenv("BENCH_GEMM_CORE_TYPE_CHOSEN") != NULL) return;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char command[512], name[64] = "";
        double seconds = 1e9;
        snprintf(command, sizeof command, "OPENBLAS_CORETYPE=%s '%s' --probe-blas", types[i],
                 argv[0]);
        FILE *pipe = popen(command, "r");
        if (pipe == NULL || fscanf(pipe, "%lf %63s", &seconds, name) != 2) seconds = 1e9;
        if (pipe != NULL) pclose(pipe);
        printf("OpenBLAS as '%s' (%s): %.1f GFLOP/s at 1024\n", types[i], name,
               2.0 * 1024 * 1024 * 1024 / seconds * 1e-9);
        if (seconds >= best) continue;
        best = seconds;
        best_type = types[i];
    }
    fflush(stdout);
    setenv("OPENBLAS_CORETYPE", best_type, 1);
    setenv("BENCH_GEMM_CORE_TYPE_CHOSEN", "1", 1);
    execv(argv[0], argv);
    perror("bench_gemm: starting again");
    exit(1);
}

/* ---- tpucl ---- */

static double time_once(tp_product_timer *timer, int repeats, bool with_weights_packed)
{
    double seconds = 0.0;
    const double start = now();
    check(tp_product_timer_run(timer, repeats, with_weights_packed, &seconds));
    return use_cpu_time ? (now() - start) / repeats : seconds;
}

static tp_product_timer *open_timer(tp_device *device, const tp_mxu_problem *problem,
                                    const char *variant, int cores)
{
    tp_product_timer *timer = NULL;
    check(tp_product_timer_create(device, problem, variant, cores, &timer));
    time_once(timer, 1, false);
    return timer;
}

static void bench_square(tp_device *device, const options *o)
{
    static const int sizes[] = {128, 256, 512, 1024, 2048};
    const bool has_clblast = o->clblast && tp_clblast_is_available();
    printf("\nsquare products, GFLOP/s, median of %d, packing included (OpenBLAS core type %s)\n",
           o->rounds, openblas_get_corename());
    printf("%6s %10s %10s %10s %10s | %9s %9s %9s\n", "size", "tpucl bf16", "tpucl f32", "CLBlast",
           "OpenBLAS", "bf16/OB", "f32/OB", "bf16/CLB");
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int size = sizes[s], repeats = size <= 256 ? 20 : 1;
        const size_t count = (size_t)size * (size_t)size;
        tp_mxu_problem bf16, f32, library;
        tp_product_dot(TP_PRECISION_DEFAULT, size, size, size, &bf16);
        tp_product_dot(TP_PRECISION_F32, size, size, size, &f32);
        library = f32;
        library.is_fast_math = true;
        tp_product_timer *timers[3] = {
            open_timer(device, &bf16, NULL, 1), open_timer(device, &f32, NULL, 1),
            has_clblast ? open_timer(device, &library, "clblast_sgemm", 1) : NULL};
        float *a = random_floats(count), *b = random_floats(count), *c = random_floats(count);
        double seconds[4][MAX_ROUNDS] = {{0}}, rate[4] = {0};
        time_blas(size, size, size, a, b, c);
        for (int round = 0; round < o->rounds; round++) {
            for (int side = 0; side < 3; side++)
                if (timers[side] != NULL && (side < 2 || round < 7))
                    seconds[side][round] = time_once(timers[side], repeats, false);
            for (int i = 0; i < repeats; i++)
                seconds[3][round] += time_blas(size, size, size, a, b, c) / repeats;
        }
        const double flops = 2.0 * size * size * (double)size;
        for (int side = 0; side < 4; side++) {
            const int rounds = side == 2 && o->rounds > 7 ? 7 : o->rounds;
            const double median = tp_product_median(seconds[side], rounds);
            rate[side] = median > 0.0 ? flops / median * 1e-9 : 0.0;
        }
        printf("%6d %10.1f %10.1f %10.1f %10.1f | %9.2f %9.2f %9.2f\n", size, rate[0], rate[1],
               rate[2], rate[3], rate[0] / rate[3], rate[1] / rate[3],
               rate[2] > 0.0 ? rate[0] / rate[2] : 0.0);
        fflush(stdout);
        for (int side = 0; side < 3; side++)
            tp_product_timer_destroy(timers[side]);
        free(a), free(b), free(c);
    }
}

/* One line: the wave with everything packed each time, with weights packed before, packing
 * alone. */
static void bench_row(tp_device *device, const options *o, const char *name,
                      const tp_mxu_problem *problem, int cores, int repeats)
{
    double all[MAX_ROUNDS], packed[MAX_ROUNDS], packing[MAX_ROUNDS];
    if (o->only != NULL && strstr(name, o->only) == NULL) return;
    tp_product_timer *timer = open_timer(device, problem, o->variant, cores);
    for (int round = 0; round < o->rounds; round++) {
        all[round] = time_once(timer, repeats, false);
        packed[round] = time_once(timer, repeats, true);
        const double start = now();
        check(tp_product_timer_run_packing(timer, repeats, &packing[round]));
        if (use_cpu_time) packing[round] = (now() - start) / repeats;
    }
    const double flops =
        2.0 * (double)problem->m * (double)problem->n * (double)problem->k * cores * 1e-9;
    const tp_mxu_plan *plan = tp_product_timer_plan(timer);
    const double best = tp_product_median(packed, o->rounds);
    printf("%-44s %-24s %8.3f ms %7.1f | %8.3f ms %7.1f | %8.3f ms\n", name,
           plan->launches[plan->launch_fills_scratch[0] >= 0 ? 1 : 0].label + sizeof "bench",
           tp_product_median(all, o->rounds) * 1e3, flops / tp_product_median(all, o->rounds),
           best * 1e3, flops / best, tp_product_median(packing, o->rounds) * 1e3);
    fflush(stdout);
    tp_product_timer_destroy(timer);
}

static void print_row_head(const char *title)
{
    printf("\n%s\n%-44s %-24s %11s %7s | %11s %7s | %11s\n", title, "product of one core", "kernel",
           "all", "GFLOP/s", "packed B", "GFLOP/s", "packing");
}

static void bench_small(tp_device *device, const options *o)
{
    /* the MLP 784-512-256-10 with 128 examples per core: forward, weight and input gradients */
    static const struct {
        const char *name;
        int m, n, k;
        char kind; /* f: x w; w: x^T dy; i: dy w^T */
    } rows[] = {
        {"forward 128 x 512 x 784", 128, 512, 784, 'f'},
        {"forward 128 x 256 x 512", 128, 256, 512, 'f'},
        {"forward 128 x 10 x 256", 128, 10, 256, 'f'},
        {"weight gradient 784 x 512 x 128", 784, 512, 128, 'w'},
        {"weight gradient 512 x 256 x 128", 512, 256, 128, 'w'},
        {"weight gradient 256 x 10 x 128", 256, 10, 128, 'w'},
        {"input gradient 128 x 512 x 256", 128, 512, 256, 'i'},
        {"input gradient 128 x 256 x 10", 128, 256, 10, 'i'},
    };
    print_row_head("small products, eight cores in a wave, bf16");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tp_mxu_problem p;
        tp_product_dot(TP_PRECISION_DEFAULT, rows[i].m, rows[i].n, rows[i].k, &p);
        p.b.is_replicated = rows[i].kind != 'w';
        if (rows[i].kind == 'w') {
            p.a.stride_outer = 1;
            p.a.stride_inner = rows[i].m;
        } else if (rows[i].kind == 'i') {
            p.b.stride_outer = rows[i].k;
            p.b.stride_inner = 1;
        }
        bench_row(device, o, rows[i].name, &p, 8, 5);
    }
}

/* A layer with padding of kernel / 2 on all sides. */
typedef struct conv_layer {
    int images, size, in_c, out_c, kernel, stride;
} conv_layer;

static void conv_problem(tp_mxu_kind kind, const conv_layer *layer, tp_mxu_problem *out)
{
    const int pad = layer->kernel / 2;
    const int64_t out_size = (layer->size + 2 * pad - layer->kernel) / layer->stride + 1;
    const tp_mxu_conv c = {
        .images = layer->images,
        .in_h = layer->size,
        .in_w = layer->size,
        .in_c = layer->in_c,
        .out_h = out_size,
        .out_w = out_size,
        .out_c = layer->out_c,
        .kernel_h = layer->kernel,
        .kernel_w = layer->kernel,
        .stride_h = layer->stride,
        .stride_w = layer->stride,
        .pad_top = pad,
        .pad_left = pad,
        .dilation_h = 1,
        .dilation_w = 1,
    };
    const int64_t in_pixels = c.images * c.in_h * c.in_w, out_pixels = c.images * c.out_h * c.out_w;
    const int64_t taps = c.kernel_h * c.kernel_w;
    *out = (tp_mxu_problem){
        .kind = kind,
        .batch = 1,
        .m = kind == TP_MXU_CONV_FILTER_GRAD  ? taps * c.in_c
             : kind == TP_MXU_CONV_INPUT_GRAD ? in_pixels
                                              : out_pixels,
        .n = kind == TP_MXU_CONV_INPUT_GRAD ? c.in_c : c.out_c,
        .k = kind == TP_MXU_CONV_FILTER_GRAD  ? out_pixels
             : kind == TP_MXU_CONV_INPUT_GRAD ? taps * c.out_c
                                              : taps * c.in_c,
        .a = {.dtype = TP_BF16},
        .b = {.dtype = TP_BF16, .is_replicated = kind != TP_MXU_CONV_FILTER_GRAD},
        .conv = c,
        .c_dtype = kind == TP_MXU_CONV_FILTER_GRAD ? TP_F32 : TP_BF16,
    };
}

/* The three products of each layer, as a step of training has them: none by the input of a first
 * layer. */
static void bench_layers(tp_device *device, const options *o, const conv_layer *layers,
                         size_t count)
{
    static const char *const kinds[] = {[TP_MXU_CONV] = "conv",
                                        [TP_MXU_CONV_INPUT_GRAD] = "input gradient",
                                        [TP_MXU_CONV_FILTER_GRAD] = "filter gradient"};
    for (size_t i = 0; i < count; i++) {
        const conv_layer *layer = &layers[i];
        for (int kind = TP_MXU_CONV; kind <= TP_MXU_CONV_FILTER_GRAD; kind++) {
            char name[96];
            tp_mxu_problem p;
            if (kind == TP_MXU_CONV_INPUT_GRAD && layer->in_c == 3) continue;
            conv_problem((tp_mxu_kind)kind, layer, &p);
            snprintf(name, sizeof name, "%s %dx%d/%d, %d->%d, %d of %d", kinds[kind], layer->kernel,
                     layer->kernel, layer->stride, layer->in_c, layer->out_c, layer->images,
                     layer->size);
            bench_row(device, o, name, &p, 1, 1);
        }
    }
}

static void bench_conv(tp_device *device, const options *o)
{
    static const conv_layer layers[] = {{128, 28, 1, 32, 3, 1},
                                        {128, 14, 16, 32, 3, 1},
                                        {128, 14, 32, 64, 3, 1},
                                        {64, 28, 64, 64, 3, 1},
                                        {16, 14, 256, 256, 3, 1}};
    print_row_head("convolutions, one core, bf16");
    bench_layers(device, o, layers, sizeof layers / sizeof layers[0]);
}

/* Every geometry of ResNet-50 (He et al., "Deep Residual Learning for Image Recognition", table 1;
 * strides in the 3x3 convolutions) at 224 x 224, batch 16. */
static void bench_resnet(tp_device *device, const options *o)
{
    static const conv_layer layers[] = {
        {16, 224, 3, 64, 7, 2},    {16, 56, 64, 64, 1, 1},    {16, 56, 64, 64, 3, 1},
        {16, 56, 64, 256, 1, 1},   {16, 56, 256, 64, 1, 1},   {16, 56, 256, 128, 1, 1},
        {16, 56, 128, 128, 3, 2},  {16, 28, 128, 128, 3, 1},  {16, 28, 128, 512, 1, 1},
        {16, 28, 512, 128, 1, 1},  {16, 56, 256, 512, 1, 2},  {16, 28, 512, 256, 1, 1},
        {16, 28, 256, 256, 3, 2},  {16, 14, 256, 256, 3, 1},  {16, 14, 256, 1024, 1, 1},
        {16, 14, 1024, 256, 1, 1}, {16, 28, 512, 1024, 1, 2}, {16, 14, 1024, 512, 1, 1},
        {16, 14, 512, 512, 3, 2},  {16, 7, 512, 512, 3, 1},   {16, 7, 512, 2048, 1, 1},
        {16, 7, 2048, 512, 1, 1},  {16, 14, 1024, 2048, 1, 2}};
    print_row_head("layers of ResNet-50, one core, bf16");
    bench_layers(device, o, layers, sizeof layers / sizeof layers[0]);
}

/* Gradients of weights of the MLP and the ResNet-18 of bench/peers: eight cores in a wave, whose sum is
 * wanted, and one core with the examples of all. */
static void bench_cores(tp_device *device, const options *o)
{
    static const struct {
        int m, n, k; /* of one of eight cores */
    } dots[] = {{784, 2048, 128}, {2048, 2048, 128}, {512, 100, 8}};
    static const conv_layer layers[] = {{8, 64, 3, 64, 7, 2},   {8, 16, 64, 64, 3, 1},
                                        {8, 16, 64, 128, 3, 2}, {8, 8, 128, 128, 3, 1},
                                        {8, 8, 128, 256, 3, 2}, {8, 4, 256, 256, 3, 1},
                                        {8, 4, 256, 512, 1, 2}, {8, 2, 512, 512, 3, 1}};
    print_row_head("gradients of weights, summed over cores, bf16");
    for (size_t i = 0; i < sizeof dots / sizeof dots[0]; i++)
        for (int cores = 8; cores >= 1; cores -= 7) {
            tp_mxu_problem p;
            char name[96];
            tp_product_dot(TP_PRECISION_DEFAULT, dots[i].m, dots[i].n, dots[i].k * 8 / cores, &p);
            p.a.stride_outer = 1;
            p.a.stride_inner = dots[i].m;
            p.most_cores = cores;
            snprintf(name, sizeof name, "%d x %d x %d, cores: %d", dots[i].m, dots[i].n,
                     dots[i].k * 8 / cores, cores);
            bench_row(device, o, name, &p, cores, 1);
        }
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        for (int cores = 8; cores >= 1; cores -= 7) {
            conv_layer layer = layers[i];
            tp_mxu_problem p;
            char name[96];
            layer.images = layer.images * 8 / cores;
            conv_problem(TP_MXU_CONV_FILTER_GRAD, &layer, &p);
            p.most_cores = cores;
            snprintf(name, sizeof name, "%dx%d/%d, %d->%d, %d of %d, cores: %d", layer.kernel,
                     layer.kernel, layer.stride, layer.in_c, layer.out_c, layer.images, layer.size,
                     cores);
            bench_row(device, o, name, &p, cores, 1);
        }
}

/* The line of --problem (tune/problem_line.h), often enough for a tenth of a second. */
static void bench_line(tp_device *device, const options *o)
{
    tp_problem_line line;
    tp_mxu_problem p;
    check(tp_problem_line_parse(tp_view_of(o->problem), &line));
    tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &p);
    print_row_head("one product, bf16");
    const double repeats = 1e10 / (tp_problem_line_flops(&line) + 2e5);
    bench_row(device, o, o->problem, &p, 1, repeats < 1.0 ? 1 : (int)repeats);
}

static options read_options(int argc, char **argv)
{
    options o = {.clblast = true, .rounds = 9};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "square") == 0) o.square = true;
        if (strcmp(argv[i], "small") == 0) o.small = true;
        if (strcmp(argv[i], "conv") == 0) o.conv = true;
        if (strcmp(argv[i], "resnet") == 0) o.resnet = true;
        if (strcmp(argv[i], "cores") == 0) o.cores = true;
        if (strcmp(argv[i], "--no-clblast") == 0) o.clblast = false;
        if (strcmp(argv[i], "--cpu-time") == 0) o.cpu_time = true;
        if (strcmp(argv[i], "--problem") == 0 && i + 1 < argc) o.problem = argv[++i];
        if (strcmp(argv[i], "--variant") == 0 && i + 1 < argc) o.variant = argv[++i];
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) o.only = argv[++i];
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) o.rounds = atoi(argv[++i]);
    }
    if (!o.square && !o.small && !o.conv && !o.resnet && !o.cores && o.problem == NULL)
        o.square = o.small = o.conv = true;
    if (o.rounds < 7) o.rounds = 7;
    if (o.rounds > MAX_ROUNDS) o.rounds = MAX_ROUNDS;
    return o;
}

int main(int argc, char **argv)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device *device = NULL;
    if (argc == 2 && strcmp(argv[1], "--probe-blas") == 0) return probe_blas();
    const options o = read_options(argc, argv);
    if (o.square) choose_core_type(argv);
    use_cpu_time = o.cpu_time;
    if (use_cpu_time) openblas_set_num_threads(1);
    check(tp_device_list_create(&list));
    check(tp_device_list_select(list, NULL, &choice));
    check(tp_device_open(list, choice.index, NULL, &device));
    tp_device_list_destroy(list);
    printf("device: %s\n", tp_device_get_caps(device)->name);
    if (o.square) bench_square(device, &o);
    if (o.small) bench_small(device, &o);
    if (o.conv) bench_conv(device, &o);
    if (o.resnet) bench_resnet(device, &o);
    if (o.cores) bench_cores(device, &o);
    if (o.problem != NULL) bench_line(device, &o);
    tp_device_close(device);
    return 0;
}
