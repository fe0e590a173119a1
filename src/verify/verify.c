/* SPDX-License-Identifier: Apache-2.0
 * All checks in order: reference variant first, so that a failure shows at the lowest layer at fault. */
#include "verify/verify.h"

#include <string.h>
#include "core/clock.h"
#include "core/str.h"
#include "verify/graph_cases.h"
#include "verify/verdicts.h"

typedef struct run {
    tp_device *device;
    const tp_verify_options *options;
    tp_verify_check *checks;
    int32_t done, total;
} run;

static bool is_wanted(const tp_verify_options *options, const char *variant)
{
    return !options->variant || strcmp(options->variant, variant) == 0;
}

static void add(run *r, const tp_verify_check *check)
{
    r->checks[r->done++] = *check;
    if (r->options->progress) r->options->progress(r->options->user, check, r->done, r->total);
}

static tpucl_status check_variant(run *r, const char *variant)
{
    size_t count = 0;
    const tp_mxu_case *cases = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        if (r->options->quick && cases[i].is_long) continue;
        tp_verify_check check = {.name = cases[i].name, .variant = variant};
        uint64_t begin_ns = tp_clock_now_ns();
        TP_TRY(tp_check_mxu_case(r->device, variant, &cases[i], &check.outcome));
        check.seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
        add(r, &check);
    }
    return TPUCL_OK;
}

/* Graphs run with the variants that may be used here, as a training would. */
static tpucl_status check_graphs(run *r, const tp_mxu_allow *allow)
{
    size_t count = 0;
    const tp_graph_case *cases = tp_graph_cases(&count);
    for (size_t i = 0; i < count; i++) {
        tp_graph *graph = NULL;
        tp_verify_check check = {.name = cases[i].name, .variant = "generated"};
        const tp_check_graph_options options = {.cores = cases[i].cores,
                                                .wave_cores = cases[i].wave_cores,
                                                .steps = cases[i].steps,
                                                .seed = 17 + i,
                                                .with_specials = cases[i].with_specials,
                                                .allow = allow};
        uint64_t begin_ns = tp_clock_now_ns();
        TP_TRY(cases[i].build(&graph));
        tpucl_status status = tp_check_graph(r->device, graph, &options, &check.outcome);
        tp_graph_destroy(graph);
        TP_TRY(status);
        check.seconds = 1e-9 * (double)(tp_clock_now_ns() - begin_ns);
        add(r, &check);
    }
    return TPUCL_OK;
}

static int32_t count_checks(const tp_verify_options *options)
{
    size_t cases = 0, graphs = 0, wanted = 0;
    const tp_mxu_case *rows = tp_mxu_cases(&cases);
    tp_graph_cases(&graphs);
    for (size_t i = 0; i < cases; i++)
        wanted += !(options->quick && rows[i].is_long);
    int32_t total = is_wanted(options, "generated") ? (int32_t)graphs : 0;
    for (const char *const *name = tp_mxu_variant_names(); *name; name++)
        if (is_wanted(options, *name)) total += (int32_t)wanted;
    return total;
}

/* Every class of products needs a variant that reproduced all of its cases. */
static bool covers_all_products(const run *r)
{
    size_t count = 0;
    const tp_mxu_case *cases = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        bool has_passed = false;
        if (r->options->quick && cases[i].is_long) continue;
        for (int32_t k = 0; k < r->done && !has_passed; k++)
            has_passed = r->checks[k].outcome.status == TP_CHECK_PASSED &&
                         !r->checks[k].outcome.is_close &&
                         strcmp(r->checks[k].name, cases[i].name) == 0;
        if (!has_passed) return false;
    }
    return true;
}

static void summarise(const run *r, tp_verify_report *out)
{
    bool graphs_agree = true, has_close = false;
    *out = (tp_verify_report){.checks = r->checks, .check_count = r->done};
    for (int32_t i = 0; i < r->done; i++) {
        const tp_verify_check *check = &r->checks[i];
        has_close = has_close || check->outcome.is_close;
        out->passed += check->outcome.status == TP_CHECK_PASSED;
        out->failed += check->outcome.status == TP_CHECK_FAILED;
        out->skipped += check->outcome.status == TP_CHECK_SKIPPED;
        if (strcmp(check->variant, "generated") == 0)
            graphs_agree = graphs_agree && check->outcome.status == TP_CHECK_PASSED;
    }
    out->is_exact =
        graphs_agree && (r->options->variant ? !has_close && !out->failed : covers_all_products(r));
}

/* A name that exists, or none. */
static tpucl_status check_wanted(const tp_verify_options *options)
{
    const char *const *names = tp_mxu_variant_names();
    size_t count = 0;
    bool is_known = is_wanted(options, "generated");
    for (; names[count]; count++)
        is_known = is_known || is_wanted(options, names[count]);
    if (is_known) return TPUCL_OK;
    const char *nearest = tp_str_nearest(options->variant, names, count);
    return TP_FAIL(
        TPUCL_INVALID_ARGUMENT,
        "there is no kernel variant '%s'; did you mean '%s'? 'generated' is the code that "
        "is generated for graphs",
        options->variant, nearest ? nearest : names[0]);
}

tpucl_status tp_verify_run(tp_device *device, const tp_verify_options *options, tp_arena *arena,
                           tp_verify_report *out_report)
{
    TP_TRY(check_wanted(options));
    run r = {.device = device, .options = options, .total = count_checks(options)};
    r.checks = TP_ARENA_NEW_ARRAY(arena, tp_verify_check, (size_t)r.total + 1);
    if (!r.checks) return TPUCL_OUT_OF_MEMORY;
    int32_t variants = 0;
    while (tp_mxu_variant_names()[variants])
        variants++;
    for (int32_t i = variants - 1; i >= 0; i--) /* the plainest is the last of the list */
        if (is_wanted(options, tp_mxu_variant_names()[i]))
            TP_TRY(check_variant(&r, tp_mxu_variant_names()[i]));
    if (is_wanted(options, "generated")) {
        tp_verdicts *verdicts = NULL;
        TP_TRY(tp_verdicts_open(device, NULL, NULL, NULL, &verdicts));
        const tp_mxu_allow allow = tp_verdicts_allow(verdicts);
        tpucl_status status = check_graphs(&r, &allow);
        tp_verdicts_close(verdicts);
        TP_TRY(status);
    }
    summarise(&r, out_report);
    return TPUCL_OK;
}
