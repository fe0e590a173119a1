/* SPDX-License-Identifier: Apache-2.0
 * The search for one product: see tuner.h.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "tune/product_timer.h"
#include "tune/search_space.h"
#include "tune/tuner.h"

/* Long enough for a clock and a launch's jitter to be small in it. */
#define SAMPLE_SECONDS 0.01
#define MAX_REPEATS 500
/* Alternating rounds for a first look. */
#define LOOK_ROUNDS 5
/* A candidate this much slower in one run is not looked at again, nor is its variant. */
#define HOPELESS 0.4
/* What a setting has to win to be taken for better than another, and a record over heuristics: below
 * is noise. */
#define LEAST_STEP 1.01
#define LEAST_GAIN 1.03
#define MAX_ROUNDS 99

TP_ARRAY_DEFINE(choice_array, tp_mxu_choice)

typedef struct search {
    const tp_tuner *tuner;
    const tp_tune_problem *problem;
    tp_tune_result *result;
    tp_tune_progress progress;
    uint64_t deadline_ns; /* 0: none */
    tp_product_timer *base;
    void *expected; /* the base's result */
    size_t expected_bytes;
    int32_t repeats;
    choice_array tried;
    int32_t expected_count; /* candidates, an estimate */
    tp_mxu_choice best;
    double best_ratio;
    bool is_stopped;
} search;

static bool is_over(search *s)
{
    const tp_tuner *t = s->tuner;
    if (t->should_stop != NULL && t->should_stop(t->user)) s->is_stopped = true;
    return s->is_stopped || (s->deadline_ns != 0 && tp_clock_now_ns() >= s->deadline_ns);
}

static void report(search *s)
{
    if (s->tuner->progress == NULL) return;
    const double share = (double)s->tried.count / (double)s->expected_count;
    s->progress.share = share < 0.95 ? share : 0.95;
    s->progress.best_ratio = s->best_ratio;
    s->tuner->progress(s->tuner->user, &s->progress);
}

static tpucl_status note_wrong(search *s, const tp_mxu_choice *choice, const char *reason)
{
    char text[TP_MXU_CHOICE_BYTES];
    const tp_tune_wrong wrong = {
        tp_arena_strdup(s->tuner->arena, tp_mxu_choice_print(choice, text)),
        tp_arena_strdup(s->tuner->arena, reason)};
    if (wrong.choice == NULL || wrong.reason == NULL) return TPUCL_OUT_OF_MEMORY;
    return tp_tune_wrongs_push(&s->result->wrong, wrong);
}

/* ---- a candidate ---- */

/* Small products like this one first, then this one's bits against the base's. */
static tpucl_status is_proven(search *s, const tp_mxu_choice *choice, tp_product_timer *timer,
                              bool *out_is_right)
{
    char text[256] = "";
    void *found = NULL;
    size_t bytes = 0;
    double seconds;
    TP_TRY(s->tuner->prove(s->tuner->prove_user, &s->problem->problem, choice, out_is_right, text));
    if (*out_is_right) {
        TP_TRY(tp_product_timer_run(timer, 1, false, &seconds));
        TP_TRY(tp_product_timer_read_bits(timer, &found, &bytes));
        *out_is_right = bytes == s->expected_bytes && memcmp(found, s->expected, bytes) == 0;
        if (!*out_is_right)
            snprintf(text, sizeof text, "the product itself has other bits than the heuristics'");
        tp_free(found);
    }
    return *out_is_right ? TPUCL_OK : note_wrong(s, choice, text);
}

static double now_seconds(const search *s)
{
    struct timespec at;
    clock_gettime(s->tuner->counts_processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC,
                  &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Of one product; packing that training does once a step for all of them is left out. */
static tpucl_status time_side(const search *s, tp_product_timer *timer, int32_t repeats,
                              double *out_seconds)
{
    double of_the_clock;
    const double begin = now_seconds(s);
    TP_TRY(tp_product_timer_run(timer, repeats, true, &of_the_clock));
    *out_seconds = (now_seconds(s) - begin) / repeats;
    return TPUCL_OK;
}

/* One round: both sides, the base first in even ones. */
static tpucl_status time_round(search *s, tp_product_timer *timer, int32_t repeats, int32_t round,
                               double out_seconds[2])
{
    tp_product_timer *const sides[2] = {s->base, timer};
    for (int32_t i = 0; i < 2; i++) {
        const int32_t side = (i + round) % 2;
        TP_TRY(time_side(s, sides[side], repeats, &out_seconds[side]));
    }
    return TPUCL_OK;
}

/* *out_ratio: base / candidate, the best of a few rounds each, because what else the machine does only ever
 * adds to a time; 0 when it is hopeless. */
static tpucl_status look(search *s, tp_product_timer *timer, double *out_ratio)
{
    double least[2], seconds[2];
    TP_TRY(time_round(s, timer, 1, 0, least));
    s->result->timed++;
    *out_ratio = 0.0;
    if (least[0] < HOPELESS * least[1]) return TPUCL_OK;
    for (int32_t i = 0; i < LOOK_ROUNDS; i++) {
        TP_TRY(time_round(s, timer, s->repeats, i, seconds));
        for (int side = 0; side < 2; side++)
            if (i == 0 || seconds[side] < least[side]) least[side] = seconds[side];
    }
    *out_ratio = least[0] / least[1];
    return TPUCL_OK;
}

static tpucl_status create_timer(const search *s, const tp_mxu_choice *choice,
                                 tp_product_timer **out_timer)
{
    const tp_mxu_allow allow = {.forced_choice = choice};
    return tp_product_timer_create_with(s->tuner->device, &s->problem->problem, &allow,
                                        s->problem->cores, out_timer);
}

/* Asked when a variant is about to win, because the first answer for a variant takes a while. */
static bool is_variant_allowed(const search *s, const char *variant)
{
    const tp_mxu_allow *allow = s->tuner->allow;
    return allow == NULL || allow->is_allowed == NULL ||
           allow->is_allowed(allow->user, variant, &s->problem->problem, NULL);
}

/* 0 for what cannot be had here, was tried, is wrong or hopeless. */
static tpucl_status try_choice(search *s, const tp_mxu_choice *choice, double *out_ratio)
{
    tp_product_timer *timer = NULL;
    bool is_right = false;
    *out_ratio = 0.0;
    for (size_t i = 0; i < s->tried.count; i++)
        if (tp_mxu_choice_equal(&s->tried.items[i], choice)) return TPUCL_OK;
    TP_TRY(choice_array_push(&s->tried, *choice));
    report(s);
    tpucl_status status = create_timer(s, choice, &timer);
    if (status == TPUCL_UNSUPPORTED || status == TPUCL_OUT_OF_DEVICE_MEMORY) {
        tp_error_clear();
        return TPUCL_OK;
    }
    if (status == TPUCL_OK) status = is_proven(s, choice, timer, &is_right);
    if (status == TPUCL_OK && is_right) status = look(s, timer, out_ratio);
    tp_product_timer_destroy(timer);
    if (status == TPUCL_OUT_OF_MEMORY) return status;
    if (status !=
        TPUCL_OK) { /* a kernel that does not build or run is no reason to end the search */
        TP_TRY(note_wrong(s, choice, tpucl_last_error()->message));
        tp_error_clear();
        *out_ratio = 0.0;
    }
    if (*out_ratio <= s->best_ratio * LEAST_STEP) return TPUCL_OK;
    if (!is_variant_allowed(s, choice->variant)) {
        *out_ratio = 0.0;
        return note_wrong(s, choice, "the variant did not reproduce the reference bits here");
    }
    s->best_ratio = *out_ratio;
    s->best = *choice;
    return TPUCL_OK;
}

/* ---- through the knobs ---- */

static tpucl_status turn_knob(search *s, const tp_search_row *row, tp_mxu_choice *inout_choice,
                              double *inout_ratio)
{
    tp_mxu_choice best = *inout_choice;
    for (int32_t i = 0; i < row->value_count && !is_over(s); i++) {
        tp_mxu_choice next = *inout_choice;
        double ratio;
        next.values[row->knob] = row->values[i];
        TP_TRY(try_choice(s, &next, &ratio));
        if (ratio <= *inout_ratio * LEAST_STEP) continue;
        *inout_ratio = ratio;
        best = next;
    }
    *inout_choice = best;
    return TPUCL_OK;
}

/* What heuristics make of `variant`; false when it cannot be had. */
static tpucl_status find_start(const search *s, const char *variant, tp_mxu_choice *out_choice,
                               bool *out_is_there)
{
    const tp_mxu_allow allow = {.forced = variant};
    tp_mxu_problem problem = s->problem->problem;
    tp_mxu_plan *plan = TP_ARENA_NEW(s->tuner->arena, tp_mxu_plan);
    if (plan == NULL) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_mxu_plain_epilogue(&problem, s->tuner->arena));
    const tpucl_status status = tp_mxu_plan_create(&problem, tp_device_get_caps(s->tuner->device),
                                                   &allow, 3, s->tuner->arena, plan);
    *out_is_there = status == TPUCL_OK;
    *out_choice = plan->choice;
    if (status == TPUCL_UNSUPPORTED) {
        tp_error_clear();
        return TPUCL_OK;
    }
    return status;
}

static bool is_seen(const search *s, tp_mxu_knob knob)
{
    return !s->tuner->counts_processor_time || knob != TP_MXU_GROUPS_PER_UNIT;
}

static tpucl_status descend(search *s, const char *variant)
{
    size_t count = 0;
    const tp_search_row *rows = tp_search_space(&count);
    const tp_mxu_choice *heuristic = &tp_product_timer_plan(s->base)->choice;
    const bool is_base = strcmp(variant, heuristic->variant) == 0;
    tp_mxu_choice choice;
    bool is_there = false;
    double ratio = 1.0;
    TP_TRY(find_start(s, variant, &choice, &is_there));
    if (!is_there) return TPUCL_OK;
    if (!is_base) TP_TRY(try_choice(s, &choice, &ratio));
    if (ratio <= 0.0) return TPUCL_OK;
    for (int turn = 0; turn < 2; turn++) {
        const double before = ratio;
        for (size_t i = 0; i < count; i++)
            if (strcmp(rows[i].variant, variant) == 0 && is_seen(s, rows[i].knob))
                TP_TRY(turn_knob(s, &rows[i], &choice, &ratio));
        if (ratio == before || is_over(s)) break;
    }
    return TPUCL_OK;
}

/* ---- the whole of it ---- */

static tpucl_status begin(search *s)
{
    double seconds = 0.0;
    size_t rows = 0;
    const tp_search_row *space = tp_search_space(&rows);
    TP_TRY(tp_product_timer_create_with(s->tuner->device, &s->problem->problem, s->tuner->allow,
                                        s->problem->cores, &s->base));
    TP_TRY(tp_product_timer_run(s->base, 1, false, &seconds));
    TP_TRY(tp_product_timer_read_bits(s->base, &s->expected, &s->expected_bytes));
    TP_TRY(time_side(s, s->base, 1, &seconds));
    const double repeats = seconds > 0.0 ? SAMPLE_SECONDS / seconds + 1.0 : MAX_REPEATS;
    s->repeats = repeats < MAX_REPEATS ? (int32_t)repeats : MAX_REPEATS;
    s->best_ratio = 1.0;
    s->best = tp_product_timer_plan(s->base)->choice;
    TP_TRY(choice_array_push(&s->tried, s->best));
    for (size_t i = 0; i < rows; i++) /* other variants are mostly given up soon */
        s->expected_count +=
            strcmp(space[i].variant, s->best.variant) == 0 ? space[i].value_count : 1;
    if (s->expected_count < 1) s->expected_count = 1;
    return TPUCL_OK;
}

/* Best against base, the whole number of rounds. */
static tpucl_status compare(search *s, tp_mxu_record *record)
{
    double ratios[MAX_ROUNDS], times[2][MAX_ROUNDS];
    tp_product_timer *timer = NULL;
    tpucl_status status = TPUCL_OK;
    const int32_t rounds = s->tuner->rounds < 3            ? 3
                           : s->tuner->rounds > MAX_ROUNDS ? MAX_ROUNDS
                                                           : s->tuner->rounds;
    int32_t wins = 0;
    TP_TRY(create_timer(s, &s->best, &timer));
    for (int32_t i = 0; i < rounds; i++) {
        double seconds[2];
        TP_TRY_GOTO(status, time_round(s, timer, s->repeats, i, seconds), done);
        times[0][i] = seconds[0];
        times[1][i] = seconds[1];
        ratios[i] = seconds[0] / seconds[1];
        wins += ratios[i] > 1.0;
    }
    record->clock = s->tuner->counts_processor_time ? "processor" : "wall";
    record->rounds = rounds;
    record->default_seconds = tp_product_median(times[0], rounds);
    record->best_seconds = tp_product_median(times[1], rounds);
    record->ratio = tp_product_median(ratios, rounds); /* sorted now */
    record->spread = (ratios[rounds - 1] - ratios[0]) / record->ratio;
    record->best = s->best;
    record->has_best = !tp_mxu_choice_equal(&s->best, &record->heuristic) &&
                       record->ratio >= LEAST_GAIN && wins * 5 >= rounds * 4;
done:
    tp_product_timer_destroy(timer);
    return status;
}

tpucl_status tp_tune_search(const tp_tuner *tuner, const tp_tune_problem *problem,
                            uint64_t deadline_ns, const tp_tune_progress *progress,
                            tp_tune_result *inout_result)
{
    search s = {.tuner = tuner,
                .problem = problem,
                .result = inout_result,
                .progress = *progress,
                .deadline_ns = deadline_ns,
                .expected_count = 1};
    tpucl_status status = TPUCL_OK;
    TP_TRY_GOTO(status, begin(&s), done);
    /* the heuristics' variant first: that is where most is won, should time run out */
    const char *first = tp_product_timer_plan(s.base)->choice.variant;
    TP_TRY_GOTO(status, descend(&s, first), done);
    for (size_t i = 0; tp_search_variant(i) != NULL && !is_over(&s); i++)
        if (strcmp(tp_search_variant(i), first) != 0)
            TP_TRY_GOTO(status, descend(&s, tp_search_variant(i)), done);
    if (s.is_stopped) {
        inout_result->state = TP_TUNE_LEFT;
        goto done;
    }
    inout_result->record.heuristic = tp_product_timer_plan(s.base)->choice;
    TP_TRY_GOTO(status, compare(&s, &inout_result->record), done);
    inout_result->state = inout_result->record.has_best ? TP_TUNE_BETTER : TP_TUNE_DEFAULT;
done:
    tp_product_timer_destroy(s.base);
    tp_free(s.expected);
    choice_array_deinit(&s.tried);
    return status;
}
