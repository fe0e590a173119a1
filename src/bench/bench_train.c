/* SPDX-License-Identifier: Apache-2.0
 * Training as a whole: the same model on the same data, three ways.
 *
 *     TPU-like   topology v2-8: eight cores, bfloat16 products, the contract's order of sums
 *     K80-like   topology k80: one core, f32, CLBlast, its usual small batch, on the same OpenCL device
 *     CPU        the same graph and global batch as TPU-like, f32, OpenBLAS and all processors
 *
 * Each side runs its own way as well as it can. The sides train in turn, a share of the examples at a time,
 * and the accuracy after equally many examples says whether they learn the same.
 */
#include <stdio.h>
#include <string.h>
#include "bench/bench_internal.h"
#include "bench/train_sides.h"
#include "tune/product_timer.h"

enum { ROUNDS = 5, SIDES = 3 };

typedef struct train_case {
    const char *name;    /* of the embedded configuration */
    int64_t examples[2]; /* per side and round: usually, and when quick */
} train_case;

static const train_case cases[] = {
    {"fashion-mlp", {12288, 4096}},
    {"fashion-conv", {2048, 512}},
};

typedef struct measured {
    const tp_bench *bench;
    const char *model, *side;
    tp_train_kind kind;
    tp_train_side *trainer;
    double rates[ROUNDS], rate, spread, accuracy;
    int64_t examples, largest_batch;
} measured;

static void show(const measured *m, const char *activity, int32_t done, int32_t total)
{
    char what[128];
    snprintf(what, sizeof what, "%s, %s: %s", m->model, m->side, activity);
    tp_bench_progress(m->bench, what, done, total);
}

/* The first use of a device builds and checks kernels, which takes much longer than the rest. */
static void on_build(const tp_build_progress *progress, void *user)
{
    show(user, progress->label, 0, 0);
}

static void summarise(measured *m, int32_t rounds)
{
    m->rate = tp_product_median(m->rates, rounds); /* sorts them */
    m->spread = (m->rates[rounds - 1] - m->rates[0]) / m->rate;
}

static tpucl_status add_rows(tp_bench *bench, const train_case *row, const measured *m)
{
    char note[128];
    double epoch = (double)tp_train_side_examples_per_epoch(m->trainer) / m->rate;
    tp_bench_row out = {.name = row->name, .side = m->side, .spread = m->spread};
    snprintf(note, sizeof note, "%s", tp_train_side_describe(m->trainer));
    out.value = m->rate, out.unit = "examples/s", out.note = note;
    TP_TRY(tp_bench_add_row(bench, &out));
    out.value = out.seconds = epoch, out.unit = "s/epoch", out.note = NULL;
    TP_TRY(tp_bench_add_row(bench, &out));
    snprintf(note, sizeof note, "test set, after %lld examples", (long long)m->examples);
    out = (tp_bench_row){.name = row->name,
                         .side = m->side,
                         .value = 100 * m->accuracy,
                         .unit = "% accuracy",
                         .note = note};
    TP_TRY(tp_bench_add_row(bench, &out));
    if (!m->largest_batch) return TPUCL_OK;
    out.value = (double)m->largest_batch, out.unit = "examples", out.is_projected = true;
    out.note = "largest batch of all cores that fits the topology's HBM and obeys the batch rules";
    return tp_bench_add_row(bench, &out);
}

static tpucl_status open_sides(tp_bench *bench, const train_case *row, measured *sides,
                               int32_t *out_count)
{
    static const struct {
        const char *name;
        tp_train_kind kind;
    } kinds[SIDES] = {
        {"TPU-like v2-8", TP_TRAIN_TPU}, {"K80-like", TP_TRAIN_K80}, {"CPU", TP_TRAIN_CPU}};
    *out_count = 0;
    for (int i = 0; i < SIDES; i++) {
        measured *m = &sides[*out_count];
        *m = (measured){
            .bench = bench, .model = row->name, .side = kinds[i].name, .kind = kinds[i].kind};
        show(m, "building kernels", 0, 0);
        tpucl_status status = tp_train_side_create(
            row->name, kinds[i].kind, bench->options->selector, on_build, m, &m->trainer);
        if (status == TPUCL_UNSUPPORTED && i > 0) { /* a library that is not there */
            TP_TRY(tp_bench_add_note(bench, tpucl_last_error()->message));
            continue;
        }
        TP_TRY(status);
        (*out_count)++;
    }
    return TPUCL_OK;
}

static tpucl_status measure(tp_bench *bench, const train_case *row, measured *sides, int32_t count)
{
    bool quick = bench->options->quick;
    int32_t rounds = quick ? 2 : ROUNDS;
    for (int32_t round = -1; round < rounds; round++)
        for (int32_t i = 0; i < count; i++) {
            int64_t wanted = row->examples[quick], done = 0;
            double seconds = 0;
            show(&sides[i], "training", (round + 1) * count + i, (rounds + 1) * count);
            TP_TRY(tp_train_side_run(sides[i].trainer, wanted, &done, &seconds));
            sides[i].examples += done;
            if (round >= 0) sides[i].rates[round] = (double)done / seconds;
        }
    for (int32_t i = 0; i < count; i++) {
        summarise(&sides[i], rounds);
        TP_TRY(tp_train_side_accuracy(sides[i].trainer, &sides[i].accuracy));
        TP_TRY(tp_train_side_largest_batch(sides[i].trainer, &sides[i].largest_batch));
        TP_TRY(add_rows(bench, row, &sides[i]));
    }
    return TPUCL_OK;
}

/* ---- the verdict ---- */

/* GFLOP/s that the side's products reach alone, from suite 'gemm'; 0 when that was not run. */
static double product_rate(const tp_bench *bench, const measured *m)
{
    static const char *const sides[] = {"tpucl bf16", "clblast f32", "openblas f32"};
    for (size_t s = 0; s < bench->report->suites.count; s++) {
        const tp_bench_suite *suite = &bench->report->suites.items[s];
        for (size_t i = 0; i < suite->rows.count && !strcmp(suite->name, "gemm"); i++)
            if (!strcmp(suite->rows.items[i].name, "1024 x 1024 x 1024") &&
                !strcmp(suite->rows.items[i].side, sides[m->kind]))
                return suite->rows.items[i].value;
    }
    return 0;
}

/* What the measured figures say about why: products alone, and how much of their speed is left in a step. */
static void write_reason(const tp_bench *bench, const measured *best, const measured *next,
                         double flops, char *out, size_t room)
{
    const double best_rate = 1e-9 * flops * best->rate, next_rate = 1e-9 * flops * next->rate;
    const double best_alone = product_rate(bench, best), next_alone = product_rate(bench, next);
    size_t used =
        (size_t)snprintf(out, room, "its steps do %.3g GFLOP/s against %.3g", best_rate, next_rate);
    if (best_alone > 0 && next_alone > 0 && used < room)
        snprintf(out + used, room - used,
                 "; its products alone are %.2f times as fast, and a step keeps %.0f %% of that "
                 "speed against %.0f %%",
                 best_alone / next_alone, 100 * best_rate / best_alone,
                 100 * next_rate / next_alone);
}

/* Equally many examples are not equally many steps: smaller batches learn more from them. */
static void write_accuracy(const measured *best, const measured *sides, int32_t count, char *out,
                           size_t room)
{
    const measured *most = best;
    for (int32_t i = 0; i < count; i++)
        if (sides[i].accuracy > most->accuracy) most = &sides[i];
    out[0] = '\0';
    if (most->accuracy > best->accuracy + 0.01)
        snprintf(out, room,
                 ". After as many examples %s is at %.1f %% accuracy against %.1f %%: its batch is "
                 "smaller, so it has made more steps",
                 most->side, 100 * most->accuracy, 100 * best->accuracy);
}

/* One sentence per model: who is fastest here, by how much, and what that is due to. */
static tpucl_status add_sentence(tp_bench *bench, const train_case *row, const measured *sides,
                                 int32_t count)
{
    char reason[256], accuracy[256];
    int32_t best = 0, next = count > 1 ? 1 : 0;
    for (int32_t i = 1; i < count; i++)
        if (sides[i].rate > sides[best].rate) best = i;
    for (int32_t i = 0; i < count; i++)
        if (i != best && (next == best || sides[i].rate > sides[next].rate)) next = i;
    write_reason(bench, &sides[best], &sides[next],
                 tp_train_side_flops_per_example(sides[0].trainer), reason, sizeof reason);
    write_accuracy(&sides[best], sides, count, accuracy, sizeof accuracy);
    const char *before = bench->suite->sentence ? bench->suite->sentence : "";
    bench->suite->sentence =
        tp_arena_printf(bench->report->arena,
                        "%s%s%s: %s is the fastest on this machine, %.2f times as fast as %s: %s%s",
                        before, *before ? "\n" : "", row->name, sides[best].side,
                        sides[best].rate / sides[next].rate, sides[next].side, reason, accuracy);
    if (!bench->suite->sentence) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 1; i < count; i++)
        TP_TRY(tp_bench_add_ratio(bench, sides[0].rate / sides[i].rate, "%s / %s, %s",
                                  sides[0].side, sides[i].side, row->name));
    return TPUCL_OK;
}

/* Ratios from a machine that does other things are not worth quoting. */
static tpucl_status add_warning(tp_bench *bench, const measured *sides, int32_t count)
{
    char text[192];
    const measured *worst = &sides[0];
    for (int32_t i = 1; i < count; i++)
        if (sides[i].spread > worst->spread) worst = &sides[i];
    if (worst->spread <= 0.5) return TPUCL_OK;
    snprintf(text, sizeof text,
             "the rates of %s, %s differ by %.0f %% from round to round: this machine is busy; "
             "repeat before quoting a ratio",
             worst->model, worst->side, 100 * worst->spread);
    return tp_bench_add_note(bench, text);
}

static tpucl_status run_case(tp_bench *bench, const train_case *row)
{
    measured sides[SIDES] = {{0}};
    int32_t count = 0;
    tpucl_status status = open_sides(bench, row, sides, &count);
    if (status == TPUCL_OK) status = measure(bench, row, sides, count);
    if (status == TPUCL_OK) status = add_sentence(bench, row, sides, count);
    if (status == TPUCL_OK) status = add_warning(bench, sides, count);
    for (int i = 0; i < SIDES; i++)
        tp_train_side_destroy(sides[i].trainer);
    return status;
}

tpucl_status tp_bench_train(tp_bench *bench)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TP_TRY(run_case(bench, &cases[i]));
    return TPUCL_OK;
}
