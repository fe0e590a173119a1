/* SPDX-License-Identifier: Apache-2.0
 * Throughput that others published, to fit and to judge projections by. Models and machines that are no built-in
 * topologies are files of configs/published, embedded here.
 */
#ifndef TP_PLAN_PUBLISHED_H
#define TP_PLAN_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tp_published_row {
    const char *model;    /* "resnet-50": configs/published/resnet-50.json */
    const char *topology; /* built-in, or "machines/NAME.json" of configs/published */
    int32_t machines;     /* so many of them, as one */
    int64_t per_core_batch;
    bool is_bf16;
    bool feeds_over_network; /* the user's machine fed f32 pictures */
    double examples_per_second;
    const char *source;
} tp_published_row;

/* `model` is NULL past the end. */
const tp_published_row *tp_published_row_at(int32_t index);

/* The text of a file of configs/published, NULL. */
const char *tp_published_file(const char *name);

/* Inference of the 2017 TPU paper, which a plain roofline over all weights tells: operations per weight and byte of
 * weights against two ceilings (Jouppi et al., "In-Datacenter Performance Analysis of a Tensor Processing Unit",
 * ISCA 2017, tables 1 to 4). */
typedef struct tp_paper_row {
    const char *app, *machine;
    double ops_per_byte;    /* of weights */
    double peak, bandwidth; /* op/s, B/s */
    double ops_per_example; /* 0: `published` is op/s, else examples/s */
    double published;
    double efficiency; /* of the v1, a class of its own; 0: a processor's */
    const char *source;
} tp_paper_row;
const tp_paper_row *tp_paper_row_at(int32_t index);
/* In the unit of `published`. */
double tp_paper_project(const tp_paper_row *row);

#endif
