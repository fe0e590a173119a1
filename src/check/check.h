/* SPDX-License-Identifier: Apache-2.0
 * What a real TPU would say to a training step: findings from one core's graph, the run configuration
 * and the topology, each with the place, the numbers and what to do. Nothing runs, no device is
 * needed. Rules are functions in rules_*.c, in a table in check.c: a new rule is a row there.
 */
#ifndef TP_CHECK_CHECK_H
#define TP_CHECK_CHECK_H

#include "core/arena.h"
#include "core/array.h"
#include "core/status.h"
#include "graph/graph.h"
#include "topo/config.h"
#include "topo/topology.h"

typedef enum tp_severity {
    TP_SEVERITY_ERROR,   /* it cannot run */
    TP_SEVERITY_WARNING, /* it runs, much slower or with other results than one would think */
    TP_SEVERITY_NOTE     /* worth knowing */
} tp_severity;

/* "error", "warning", "note". Static. */
const char *tp_severity_name(tp_severity severity);

typedef struct tp_finding {
    tp_severity severity;
    const char *rule;   /* "mxu-padding": stable, for scripts */
    const char *where;  /* a layer's name, a configuration key, a tensor; "" for the whole run */
    const char *text;   /* one sentence with the numbers */
    const char *remedy; /* what to do, or "" */
} tp_finding;

TP_ARRAY_DEFINE(tp_findings, tp_finding)

/* A variable: what every device keeps between steps, once for each replica group. */
typedef struct tp_check_state {
    const char *name;
    const char *kind; /* see tp_check_state_kind */
    const char *of;   /* the weight whose state it is, or "" */
    const char *dtype, *shape;
    int64_t elems, bytes;
} tp_check_state;

TP_ARRAY_DEFINE(tp_check_states, tp_check_state)

/* "weight" (trained), "fixed" (frozen weights, moving statistics), "first_moment", "second_moment", "average",
 * "scalar" (the optimizer's); NULL past the end. Static. */
const char *tp_check_state_kind(int32_t index);

typedef struct tp_check_input {
    const tp_graph *
        train; /* one core's training step; NULL: there is none, as parts of the model were refused */
    const tp_config *config;
    const tp_topology *topology;
    int64_t train_examples;
} tp_check_input;

/* Of the step's products. */
typedef struct tp_check_summary {
    double flops;                      /* of one core's step, 2 for each multiply-add */
    double mxu_flops;                  /* what the MXU spends on them, padding included */
    double tensor_bytes, padded_bytes; /* all tensors of the step, in their best layouts */
} tp_check_summary;

typedef struct tp_check_report {
    tp_arena *arena;        /* owns the texts */
    tp_findings findings;   /* errors first; within a severity in the order of the rules */
    tp_check_states states; /* all variables, in the graph's order */
    tp_check_summary summary;
} tp_check_report;

tpucl_status tp_check_create(tp_check_report **out_report) TPUCL_MUST_CHECK;
void tp_check_destroy(tp_check_report *report);

/* Adds what the rules find, lists the state and fills the summary; without a graph, what the others find. */
tpucl_status tp_check_run(const tp_check_input *input, tp_check_report *report) TPUCL_MUST_CHECK;

/* Only what makes a run learn wrongly, not slowly: state in bf16 that cannot follow its updates. For the start of a
 * training. */
tpucl_status tp_check_run_hazards(const tp_check_input *input,
                                  tp_check_report *report) TPUCL_MUST_CHECK;

/* Adds one finding; texts are copied. */
tpucl_status tp_check_add(tp_check_report *report, tp_severity severity, const char *rule,
                          const char *where, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7))) TPUCL_MUST_CHECK;

/* Errors first, then warnings, then notes; each as they were added. tp_check_run does it, too. */
tpucl_status tp_check_sort(tp_check_report *report) TPUCL_MUST_CHECK;

/* Adds an error for each line of the thread's error record: a configuration or model that was
 * refused with all its problems. */
tpucl_status tp_check_add_error(tp_check_report *report, const char *rule) TPUCL_MUST_CHECK;

#endif
