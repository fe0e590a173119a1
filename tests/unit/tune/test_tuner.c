/* SPDX-License-Identifier: Apache-2.0
 * The tuner on a device: what is not proven is not timed, records are kept and found again, stopping leaves the
 * rest. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/file.h"
#include "kernels/device.h"
#include "tune/problem_line.h"
#include "tune/tuner.h"

typedef struct fixture {
    tp_tuner tuner;
    tp_tune_problems problems;
    tp_tune_result results[4];
    char folder[32];
    int proofs, stop_after; /* proofs until it is stopped; 0: never */
} fixture;

/* Everything is right, except tiles of other heights than the heuristics' 4. */
static tpucl_status prove(void *user, const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                          bool *out_is_right, char out_text[256])
{
    fixture *f = user;
    (void)problem;
    f->proofs++;
    *out_is_right =
        strcmp(choice->variant, "mxu_direct") == 0 && choice->values[TP_MXU_TILE_M] == 8;
    strcpy(out_text, *out_is_right ? "" : "made up");
    return TPUCL_OK;
}

/* So that heuristics choose mxu_direct for small products, whose one knob is quickly turned. */
static bool is_not_outer(void *user, const char *variant, const tp_mxu_problem *problem,
                         const tp_mxu_choice *choice)
{
    (void)user;
    (void)problem;
    (void)choice;
    return strncmp(variant, "mxu_outer", 9) != 0;
}

static const tp_mxu_allow allow = {.is_allowed = is_not_outer};

static bool should_stop(void *user)
{
    const fixture *f = user;
    return f->stop_after > 0 && f->proofs >= f->stop_after;
}

static void open(fixture *f)
{
    *f = (fixture){.folder = "/tmp/tpucl_tuner_XXXXXX"};
    cr_assert(mkdtemp(f->folder) != NULL);
    f->tuner = (tp_tuner){.device = test_device_open(),
                          .allow = &allow,
                          .prove = prove,
                          .prove_user = f,
                          .folder = f->folder,
                          .seconds = 60,
                          .rounds = 3,
                          .should_stop = should_stop,
                          .user = f};
    cr_assert(tp_arena_create(0, &f->tuner.arena) == TPUCL_OK);
}

static void add(fixture *f, const char *text)
{
    tp_problem_line line;
    tp_mxu_problem problem;
    cr_assert(tp_problem_line_parse(tp_view_of(text), &line) == TPUCL_OK);
    tp_problem_line_to_mxu(&line, TP_PRECISION_DEFAULT, &problem);
    cr_assert(tp_tune_problems_add(&f->problems, &problem, 1, 1, f->tuner.arena) == TPUCL_OK);
}

static void run(fixture *f)
{
    for (size_t i = 0; i < f->problems.count; i++)
        tp_tune_result_deinit(&f->results[i]);
    cr_assert(tp_tuner_run(&f->tuner, &f->problems, f->results) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
}

static void close_all(fixture *f)
{
    for (size_t i = 0; i < f->problems.count; i++)
        tp_tune_result_deinit(&f->results[i]);
    tp_tune_problems_deinit(&f->problems);
    cr_assert(tp_file_remove(tp_tuner_path(&f->tuner)) == TPUCL_OK);
    cr_assert(rmdir(f->folder) == 0, "something was left in %s", f->folder);
    tp_device_close(f->tuner.device);
    tp_arena_destroy(f->tuner.arena);
}

Test(tuner, times_only_what_is_proven_and_keeps_a_record)
{
    fixture f;
    open(&f);
    add(&f, "dot 16 16 64");
    add(&f, "dot 16 16 64"); /* once more, so once in the list */
    run(&f);
    const tp_tune_result *result = &f.results[0];
    cr_assert(f.problems.count == 1 && f.problems.items[0].uses == 2);
    cr_assert(result->state == TP_TUNE_BETTER || result->state == TP_TUNE_DEFAULT);
    cr_assert(result->timed == 1 && result->wrong.count >= 5, "%d timed, %zu wrong", result->timed,
              result->wrong.count);
    for (size_t i = 0; i < result->wrong.count; i++)
        cr_assert_str_eq(result->wrong.items[i].reason, "made up");
    const tp_mxu_record *record = &result->record;
    cr_assert_str_eq(record->problem, "dot 16 16 64 bf16*bf16");
    cr_assert(record->rounds == 3 && record->contract >= 1 && strlen(record->date) == 10);
    cr_assert(record->default_seconds > 0 && record->best_seconds > 0);
    cr_assert_str_eq(record->heuristic.variant, "mxu_direct");

    const int proofs = f.proofs;
    run(&f);
    cr_assert(f.results[0].state == TP_TUNE_KNOWN && f.proofs == proofs);
    cr_assert(f.results[0].record.ratio == record->ratio);
    f.tuner.again = true;
    run(&f);
    cr_assert(f.results[0].state != TP_TUNE_KNOWN && f.proofs > proofs);
    close_all(&f);
}

Test(tuner, leaves_the_rest_when_it_is_stopped)
{
    fixture f;
    open(&f);
    add(&f, "dot 16 16 64");
    run(&f);
    add(&f, "dot 16 24 64");
    add(&f, "dot 16 32 64");
    f.stop_after = f.proofs + 2;
    run(&f);
    cr_assert(f.results[0].state == TP_TUNE_KNOWN && f.results[1].state == TP_TUNE_LEFT &&
              f.results[2].state == TP_TUNE_LEFT);
    close_all(&f);
}

Test(tuner, goes_on_after_a_product_that_does_not_fit)
{
    fixture f;
    open(&f);
    add(&f, "dot 1000000 1000000 1");
    add(&f, "dot 16 16 64");
    run(&f);
    cr_assert(f.results[0].state == TP_TUNE_FAILED && *f.results[0].text);
    cr_assert(f.results[1].state == TP_TUNE_BETTER || f.results[1].state == TP_TUNE_DEFAULT);
    close_all(&f);
}
