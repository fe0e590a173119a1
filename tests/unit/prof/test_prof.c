/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "core/json.h"
#include "core/thread.h"
#include "harness/alloc_loop.h"
#include "prof/breakdown.h"
#include "prof/trace.h"

Test(trace, no_trace_does_nothing)
{
    char *text;
    cr_assert_eq(tp_trace_lane(NULL, "x"), -1);
    tp_trace_zone(NULL, 0, "x", 1, 2, 3);
    cr_assert_eq(tp_trace_lost(NULL), 0);
    cr_assert_eq(tp_trace_to_json(NULL, &text), TPUCL_OK);
    cr_assert_str_eq(text, "{\"traceEvents\":[],\"displayTimeUnit\":\"ms\"}");
    tp_free(text);
    tp_trace_destroy(NULL);
}

Test(trace, chrome_json)
{
    tp_trace *trace;
    char *text;
    cr_assert_eq(tp_trace_create(0, &trace), TPUCL_OK);
    int compute = tp_trace_lane(trace, "compute"), infeed = tp_trace_lane(trace, "infeed");
    cr_assert(compute == 0 && infeed == 1 && tp_trace_lane(trace, "compute") == 0);
    tp_trace_zone(trace, infeed, "batch", 2500, 3000, -1);
    tp_trace_zone(trace, compute, "step \"1\"", 1000, 4000, 7);
    cr_assert_eq(tp_trace_to_json(trace, &text), TPUCL_OK);
    cr_assert_str_eq(
        text,
        "{\"traceEvents\":["
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":"
        "\"compute\"}},"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":"
        "\"infeed\"}},"
        "{\"name\":\"step \\\"1\\\"\",\"ph\":\"X\",\"ts\":0.0,\"dur\":3.0,\"pid\":1,\"tid\":0,"
        "\"args\":{\"step\":7}},"
        "{\"name\":\"batch\",\"ph\":\"X\",\"ts\":1.5,\"dur\":0.5,\"pid\":1,\"tid\":1}],"
        "\"displayTimeUnit\":\"ms\"}");
    tp_free(text);
    tp_trace_destroy(trace);
}

typedef struct adder {
    tp_trace *trace;
    int lane;
} adder;

static tpucl_status add_zones(void *user)
{
    const adder *a = user;
    for (uint64_t i = 0; i < 1000; i++)
        tp_trace_zone(a->trace, a->lane, "z", i, i + 1, (int64_t)i);
    return TPUCL_OK;
}

static size_t count_events(const tp_trace *trace)
{
    char *text;
    tp_json_document *document;
    cr_assert_eq(tp_trace_to_json(trace, &text), TPUCL_OK);
    cr_assert_eq(tp_json_parse(text, strlen(text), "trace", &document), TPUCL_OK);
    size_t count = tp_json_member(tp_json_root(document), "traceEvents")->count;
    tp_json_destroy(document);
    tp_free(text);
    return count;
}

Test(trace, rings_of_threads_keep_the_newest)
{
    tp_trace *trace, *other;
    tp_thread *threads[4];
    cr_assert_eq(tp_trace_create(600, &trace), TPUCL_OK);
    cr_assert_eq(tp_trace_create(10, &other), TPUCL_OK);
    adder adders[4];
    for (int i = 0; i < 4; i++) {
        adders[i] = (adder){trace, tp_trace_lane(trace, "shared")};
        cr_assert_eq(tp_thread_create("t", add_zones, &adders[i], &threads[i]), TPUCL_OK);
    }
    for (int i = 0; i < 4; i++)
        cr_assert_eq(tp_thread_join(threads[i]), TPUCL_OK);
    cr_assert_eq(tp_trace_lost(trace), 4 * 400);
    cr_assert_eq(count_events(trace), 1 + 4 * 600);
    /* one thread, two traces in turn: no ring is made twice */
    int lane = tp_trace_lane(other, "o");
    for (uint64_t i = 0; i < 10; i++) {
        tp_trace_zone(other, lane, "z", i, i, 0);
        tp_trace_zone(trace, 0, "z", i, i, 0);
    }
    cr_assert_eq(count_events(other), 1 + 10);
    cr_assert_eq(tp_trace_lost(other), 0);
    tp_trace_zone(other, -1, "dropped", 0, 0, 0);
    cr_assert_eq(tp_trace_lost(other), 1);
    tp_trace_destroy(trace);
    tp_trace_destroy(other);
}

Test(breakdown, shares_add_up)
{
    tp_breakdown a = {0}, b = {0};
    tp_breakdown_add(&a, 2, 200, 20, 100, 40);
    tp_breakdown_add(&b, 1, 300, 30, 200, 60);
    tp_breakdown_add(&b, 0, 999, 999, 999, 999);
    tp_breakdown_merge(&a, &b);
    cr_assert(a.steps == 3 && a.total_ns == 500 && a.min_step_ns == 100 && a.max_step_ns == 300);
    tp_breakdown_shares s = tp_breakdown_get_shares(&a);
    cr_assert_float_eq(s.input, 0.1, 1e-15);
    cr_assert_float_eq(s.compute, 0.6, 1e-15);
    cr_assert_float_eq(s.memory, 0.2, 1e-15);
    cr_assert_float_eq(s.idle, 0.1, 1e-15);
    tp_breakdown over = {0};
    tp_breakdown_add(&over, 1, 100, 100, 200, 100);
    s = tp_breakdown_get_shares(&over);
    cr_assert(s.input == 0.25 && s.compute == 0.5 && s.memory == 0.25 && s.idle == 0);
}

Test(breakdown, verdict)
{
    const struct {
        uint64_t input, compute, memory;
        const char *begin;
    } cases[] = {{20, 80, 0, "input-bound: 20%"},
                 {19, 81, 0, "partly input-bound: 19%"},
                 {4, 80, 15, "transfer-bound: 15%"},
                 {4, 93, 0, "host overhead: 3%"},
                 {4, 94, 0, "compute-bound: 94%"}};
    char text[TP_BREAKDOWN_VERDICT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tp_breakdown b = {0};
        tp_breakdown_add(&b, 1, 100, cases[i].input, cases[i].compute, cases[i].memory);
        const char *verdict = tp_breakdown_verdict(&b, text);
        cr_assert_eq(strncmp(verdict, cases[i].begin, strlen(cases[i].begin)), 0, "%s", verdict);
    }
    tp_breakdown none = {0};
    cr_assert_str_eq(tp_breakdown_verdict(&none, text), "unknown: no step was measured");
}

static tpucl_status trace_something(void *user)
{
    tp_trace *trace;
    char *text = NULL;
    (void)user;
    TP_TRY(tp_trace_create(4, &trace));
    int lane = tp_trace_lane(trace, "lane");
    tp_trace_zone(trace, lane, "z", 1, 2, 3);
    tpucl_status status = tp_trace_to_json(trace, &text);
    bool whole =
        tp_trace_lost(trace) == 0; /* a zone that found no memory is counted, not an error */
    tp_free(text);
    tp_trace_destroy(trace);
    return status == TPUCL_OK && !whole ? TP_FAIL(TPUCL_OUT_OF_MEMORY, "a zone was dropped")
                                        : status;
}

Test(trace, every_allocation_may_fail)
{
    alloc_loop_run(trace_something, NULL);
}
