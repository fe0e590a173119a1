/* SPDX-License-Identifier: Apache-2.0
 * One side of bench/peers/products: a process that stays, takes problems, and times them when asked,
 * so that sides can take turns.
 *
 *   bench_products describe FILE          the problems of a file (tune/problem_line.h), as JSON
 *   bench_products roofline [--device SELECTOR]     the device's peaks (bench/roofline.h), as JSON
 *   bench_products SIDE [--cpu-time] [--device SELECTOR]     SIDE: tpucl, clblast or openblas
 *
 * Requests on standard input, a line each; each is answered by a line of JSON, {"error": ...} when
 * it failed:
 *   open PRECISION A B C PROBLEM...       reads the operands (raw f32 as they lie in memory), runs
 *                                         once, writes the result likewise; {"note": kernel}
 *   time REPEATS                          runs once to warm, then REPEATS times;
 *                                         {"seconds": of one}
 * --cpu-time counts processor seconds of all threads instead of the wall clock's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "baseline/openblas.h"
#include "bench/roofline.h"
#include "core/file.h"
#include "core/json_write.h"
#include "device/clblast.h"
#include "tune/problem_line.h"
#include "tune/product_timer.h"

enum { REQUEST_BYTES = 8192 };

typedef enum side_kind { SIDE_TPUCL, SIDE_CLBLAST, SIDE_OPENBLAS, SIDE_ROOFLINE, SIDES } side_kind;

typedef struct side {
    side_kind kind;
    bool uses_cpu_time;
    tp_device *device;       /* tpucl, clblast */
    tp_product_timer *timer; /* of the open problem */
    tp_openblas *blas;
    tp_problem_line line;
    float *tensors[3]; /* openblas */
} side;

static tpucl_status print_json(tp_json_writer *writer)
{
    char *text;
    TP_TRY(tp_json_writer_finish(writer, &text));
    printf("%s\n", text);
    fflush(stdout);
    tp_free(text);
    return TPUCL_OK;
}

/* ---- files of raw f32 ---- */

/* How many elements A, B and C have in memory. */
static void count_elements(const tp_problem_line *line, size_t out_counts[3])
{
    const tp_mxu_conv *c = &line->conv;
    const int64_t images = c->images * c->in_h * c->in_w * c->in_c;
    const int64_t results = c->images * c->out_h * c->out_w * c->out_c;
    const int64_t filter =
        c->kernel_h * c->kernel_w * (c->in_c / (c->groups ? c->groups : 1)) * c->out_c;
    const int64_t by_kind[][3] = {
        [TP_MXU_DOT] = {line->batch * line->m * line->k, line->batch * line->k * line->n,
                        line->batch * line->m * line->n},
        [TP_MXU_CONV] = {images, filter, results},
        [TP_MXU_CONV_INPUT_GRAD] = {results, filter, images},
        [TP_MXU_CONV_FILTER_GRAD] = {images, results, filter},
    };
    for (int i = 0; i < 3; i++)
        out_counts[i] = (size_t)by_kind[line->kind][i];
}

static tpucl_status read_floats(const char *path, size_t count, float **out_values)
{
    char *bytes;
    size_t length;
    TP_TRY(tp_file_read(path, count * sizeof(float), &bytes, &length));
    *out_values = (float *)(void *)bytes; /* what tp_file_read allocates is aligned for all */
    if (length == count * sizeof(float)) return TPUCL_OK;
    tp_free(bytes);
    *out_values = NULL;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' has %zu bytes, expected %zu floats", path, length,
                   count);
}

/* ---- a problem on a side ---- */

static void close_problem(side *s)
{
    tp_product_timer_destroy(s->timer);
    s->timer = NULL;
    for (int i = 0; i < 3; i++) {
        tp_free(s->tensors[i]);
        s->tensors[i] = NULL;
    }
}

static void run_openblas(const side *s)
{
    const tp_problem_line *p = &s->line;
    tp_openblas_gemm gemm = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .lda = p->a_is_transposed ? p->m : p->k,
                             .ldb = p->b_is_transposed ? p->k : p->n,
                             .ldc = p->n,
                             .transpose_a = p->a_is_transposed,
                             .transpose_b = p->b_is_transposed};
    for (int64_t z = 0; z < p->batch; z++) {
        gemm.a = s->tensors[0] + z * p->m * p->k;
        gemm.b = s->tensors[1] + z * p->k * p->n;
        gemm.c = s->tensors[2] + z * p->m * p->n;
        tp_openblas_sgemm(s->blas, &gemm);
    }
}

static tpucl_status run_many(side *s, int32_t repeats)
{
    double seconds;
    if (s->kind != SIDE_OPENBLAS) return tp_product_timer_run(s->timer, repeats, false, &seconds);
    for (int32_t i = 0; i < repeats; i++)
        run_openblas(s);
    return TPUCL_OK;
}

static tpucl_status open_timer(side *s, tp_precision precision, const size_t counts[3])
{
    tp_mxu_problem problem;
    tp_problem_line_to_mxu(&s->line, precision, &problem);
    problem.is_fast_math = s->kind == SIDE_CLBLAST;
    TP_TRY(tp_product_timer_create(s->device, &problem,
                                   s->kind == SIDE_CLBLAST ? "clblast_sgemm" : NULL, 1, &s->timer));
    for (int32_t i = 0; i < 2; i++) {
        TP_CHECK(tp_product_timer_elements(s->timer, i) == counts[i]);
        TP_TRY(tp_product_timer_write_tensor(s->timer, i, s->tensors[i]));
    }
    return TPUCL_OK;
}

static tpucl_status open_problem(side *s, tp_precision precision, char *const paths[3])
{
    size_t counts[3];
    count_elements(&s->line, counts);
    if (s->kind == SIDE_OPENBLAS && s->line.kind != TP_MXU_DOT)
        return TP_FAIL(TPUCL_UNSUPPORTED, "OpenBLAS has no convolutions");
    if (s->kind != SIDE_TPUCL && precision != TP_PRECISION_F32)
        return TP_FAIL(TPUCL_UNSUPPORTED, "this side computes in f32 only");
    for (int i = 0; i < 2; i++)
        TP_TRY(read_floats(paths[i], counts[i], &s->tensors[i]));
    s->tensors[2] = TP_NEW_ARRAY(float, counts[2]);
    if (!s->tensors[2]) return TPUCL_OUT_OF_MEMORY;
    if (s->kind != SIDE_OPENBLAS) TP_TRY(open_timer(s, precision, counts));
    TP_TRY(run_many(s, 1));
    if (s->timer) TP_TRY(tp_product_timer_read(s->timer, s->tensors[2]));
    return tp_file_write_atomic(paths[2], s->tensors[2], counts[2] * sizeof(float));
}

/* ---- requests ---- */

static tpucl_status answer_open(side *s, char *rest)
{
    char *words[4], *save = NULL;
    tp_precision precision;
    tp_json_writer writer = {.compact = true};
    for (int i = 0; i < 4; i++) {
        words[i] = strtok_r(i == 0 ? rest : NULL, " ", &save);
        if (!words[i])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected 'open PRECISION A B C PROBLEM'");
    }
    TP_TRY(tp_precision_parse(words[0], &precision));
    TP_TRY(tp_problem_line_parse(tp_view_of(save), &s->line));
    TP_TRY(open_problem(s, precision, words + 1));
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "note",
                       s->timer ? tp_product_timer_plan(s->timer)->variant
                                : tp_openblas_core(s->blas));
    tp_json_end_object(&writer);
    return print_json(&writer);
}

static double now(const side *s)
{
    struct timespec time;
    clock_gettime(s->uses_cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tpucl_status answer_time(side *s, const char *rest)
{
    int64_t repeats;
    tp_json_writer writer = {.compact = true};
    TP_TRY(tp_str_parse_int64(tp_view_of(rest), &repeats));
    if (repeats < 1 || repeats > 1000000 || !s->tensors[2])
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "expected an open problem and 1 to 1000000 repeats");
    TP_TRY(run_many(s, 1));
    const double start = now(s);
    TP_TRY(run_many(s, (int32_t)repeats));
    tp_json_begin_object(&writer);
    tp_json_put_double(&writer, "seconds", (now(s) - start) / (double)repeats);
    tp_json_end_object(&writer);
    return print_json(&writer);
}

static tpucl_status answer(side *s, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (tp_str_starts_with(line, "open ")) {
        close_problem(s);
        const tpucl_status status = answer_open(s, line + 5);
        if (status != TPUCL_OK) close_problem(s);
        return status;
    }
    if (tp_str_starts_with(line, "time ")) return answer_time(s, line + 5);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s': expected 'open' or 'time'", line);
}

static tpucl_status answer_all(side *s)
{
    static char line[REQUEST_BYTES];
    while (fgets(line, sizeof line, stdin)) {
        if (answer(s, line) == TPUCL_OK) continue;
        tp_json_writer writer = {.compact = true};
        tp_json_begin_object(&writer);
        tp_json_put_string(&writer, "error", tpucl_last_error()->message);
        tp_json_end_object(&writer);
        TP_TRY(print_json(&writer));
    }
    return TPUCL_OK;
}

/* ---- describe ---- */

static void put_conv(tp_json_writer *writer, const tp_mxu_conv *c)
{
    const struct {
        const char *key;
        int64_t value;
    } rows[] = {{"images", c->images},       {"in_h", c->in_h},         {"in_w", c->in_w},
                {"in_c", c->in_c},           {"out_h", c->out_h},       {"out_w", c->out_w},
                {"out_c", c->out_c},         {"kernel_h", c->kernel_h}, {"kernel_w", c->kernel_w},
                {"stride", c->stride_h},     {"pad_top", c->pad_top},   {"pad_left", c->pad_left},
                {"dilation", c->dilation_h}, {"groups", c->groups}};
    tp_json_key(writer, "conv");
    tp_json_begin_object(writer);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tp_json_put_int(writer, rows[i].key, rows[i].value);
    tp_json_end_object(writer);
}

static void put_line(tp_json_writer *writer, const tp_problem_line *line)
{
    static const char *const kinds[] = {[TP_MXU_DOT] = "dot",
                                        [TP_MXU_CONV] = "forward",
                                        [TP_MXU_CONV_INPUT_GRAD] = "input_grad",
                                        [TP_MXU_CONV_FILTER_GRAD] = "filter_grad"};
    char text[TP_PROBLEM_LINE_BYTES];
    size_t counts[3];
    tp_problem_line_print(line, text);
    count_elements(line, counts);
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "problem", text);
    tp_json_put_string(writer, "op", kinds[line->kind]);
    tp_json_put_int(writer, "times", line->times);
    tp_json_put_double(writer, "flops", tp_problem_line_flops(line));
    tp_json_put_int(writer, "batch", line->batch);
    tp_json_put_int(writer, "m", line->m);
    tp_json_put_int(writer, "n", line->n);
    tp_json_put_int(writer, "k", line->k);
    tp_json_put_bool(writer, "a_is_transposed", line->a_is_transposed);
    tp_json_put_bool(writer, "b_is_transposed", line->b_is_transposed);
    if (line->kind != TP_MXU_DOT) put_conv(writer, &line->conv);
    tp_json_key(writer, "elements");
    tp_json_begin_inline_array(writer);
    for (int i = 0; i < 3; i++)
        tp_json_write_uint(writer, counts[i]);
    tp_json_end_array(writer);
    tp_json_end_object(writer);
}

static tpucl_status describe(const char *path)
{
    tp_problem_lines lines = {0};
    tp_json_writer writer = {0};
    tpucl_status status;
    TP_TRY_GOTO(status, tp_problem_lines_read(path, &lines), done);
    tp_json_begin_array(&writer);
    for (size_t i = 0; i < lines.count; i++)
        put_line(&writer, &lines.items[i]);
    tp_json_end_array(&writer);
    status = print_json(&writer);
done:
    tp_problem_lines_deinit(&lines);
    tp_json_writer_deinit(&writer);
    return status;
}

/* ---- start ---- */

static tpucl_status open_device(side *s, const char *selector)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    TP_TRY(tp_device_list_create(&list));
    tpucl_status status = tp_device_list_select(list, selector, &choice);
    if (status == TPUCL_OK) status = tp_device_open(list, choice.index, NULL, &s->device);
    tp_device_list_destroy(list);
    return status;
}

static tpucl_status print_roofline(tp_device *device)
{
    tp_roofline r;
    tp_json_writer writer = {0};
    TP_TRY(tp_roofline_measure(device, false, &r));
    const bool is_driver_faster = r.driver_copy_bytes > r.copy_bytes;
    tp_json_begin_object(&writer);
    tp_json_put_double(&writer, "multiply_add_flops", r.multiply_add_flops);
    tp_json_put_double(&writer, "pair_flops", r.pair_flops);
    tp_json_put_double(&writer, "copy_bytes",
                       is_driver_faster ? r.driver_copy_bytes : r.copy_bytes);
    tp_json_end_object(&writer);
    return print_json(&writer);
}

static tpucl_status run_side(side *s)
{
    if (s->kind == SIDE_ROOFLINE) return print_roofline(s->device);
    if (s->kind == SIDE_CLBLAST && !tp_clblast_is_available())
        return TP_FAIL(TPUCL_UNSUPPORTED, "CLBlast cannot be loaded");
    return answer_all(s);
}

static tpucl_status serve(int argc, char **argv)
{
    static const char *const names[SIDES] = {"tpucl", "clblast", "openblas", "roofline"};
    const char *selector = NULL;
    side s = {0};
    size_t kind = 0;
    while (kind < SIDES && strcmp(argv[1], names[kind]) != 0)
        kind++;
    if (kind == SIDES)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "no side '%s': expected tpucl, clblast, openblas",
                       argv[1]);
    s.kind = (side_kind)kind;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--cpu-time") == 0) s.uses_cpu_time = true;
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) selector = argv[++i];
    }
    tpucl_status status =
        s.kind == SIDE_OPENBLAS ? tp_openblas_open(&s.blas) : open_device(&s, selector);
    if (status == TPUCL_OK) status = run_side(&s);
    close_problem(&s);
    tp_openblas_close(s.blas);
    if (s.device) tp_device_close(s.device);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "describe") == 0 && argc != 3)) {
        fprintf(stderr, "usage: bench_products tpucl|clblast|openblas, or describe FILE\n");
        return 2;
    }
    const tpucl_status status =
        strcmp(argv[1], "describe") == 0 ? describe(argv[2]) : serve(argc, argv);
    if (status == TPUCL_OK) return 0;
    fprintf(stderr, "bench_products: %s\n", tpucl_last_error()->message);
    return 1;
}
