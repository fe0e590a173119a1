/* SPDX-License-Identifier: Apache-2.0
 * What the files of random_graph share: the graph being made, and what is drawn from it.
 */
#ifndef TESTS_HARNESS_RANDOM_GRAPH_INTERNAL_H
#define TESTS_HARNESS_RANDOM_GRAPH_INTERNAL_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "graph/builder.h"
#include "graph/loop.h"
#include "harness/random_graph.h"

enum { MAX_ELEMS = 40000, MAX_TURNS = 20 };

typedef struct maker {
    tp_graph *g;
    uint32_t state;
    int64_t dims[3]; /* most shapes are made of these */
    int64_t stream;
    bool has_random;
    int32_t loop;      /* that ops are added to, 0: none */
    tp_node_id filter; /* [kh, kw, ci, co], TP_NO_NODE: no images in this graph */
} maker;

static inline uint32_t draw(maker *m, uint32_t below)
{
    m->state = m->state * 1664525u + 1013904223u; /* Numerical Recipes */
    return (m->state >> 8) % below;
}

static inline const tp_node *node_of(const maker *m, tp_node_id id)
{
    return tp_graph_node(m->g, id);
}

static inline tp_shape shape_of(const maker *m, tp_node_id id)
{
    return node_of(m, id)->shape;
}

static inline bool is_float(const maker *m, tp_node_id id)
{
    return tp_dtype_is_float(node_of(m, id)->dtype);
}

/* One of the shapes that broadcast with each other. */
static inline tp_shape draw_shape(maker *m)
{
    const int64_t a = m->dims[0], b = m->dims[1], c = m->dims[2];
    const tp_shape shapes[] = {{3, {a, b, c}}, {2, {b, c}},    {1, {c}},       {0, {0}},
                               {3, {a, 1, c}}, {3, {a, b, 1}}, {2, {b, 1}},    {3, {a, b, c}},
                               {2, {1, c}},    {3, {1, b, c}}, {3, {a, b, c}}, {2, {b, c}}};
    return shapes[draw(m, sizeof shapes / sizeof shapes[0])];
}

/* Values of a loop are for this loop only. */
static inline bool is_in_reach(const maker *m, tp_node_id id)
{
    return node_of(m, id)->loop == 0 || node_of(m, id)->loop == m->loop;
}

static inline tp_node_id draw_node(maker *m)
{
    for (;;) {
        /* Late ones more often, so that chains get long. */
        const uint32_t count = (uint32_t)m->g->node_count;
        const uint32_t recent = count < 8 ? count : 8;
        const tp_node_id id = draw(m, 3) != 0 ? (tp_node_id)(count - 1 - draw(m, recent))
                                              : (tp_node_id)draw(m, count);
        if (is_in_reach(m, id)) return id;
    }
}

static inline tp_node_id draw_of(maker *m, bool (*fits)(const maker *m, tp_node_id id))
{
    for (int i = 0; i < 40; i++) {
        const tp_node_id id = draw_node(m);
        if (fits(m, id)) return id;
    }
    return TP_NO_NODE;
}

static inline bool is_f32(const maker *m, tp_node_id id)
{
    return node_of(m, id)->dtype == TP_F32;
}

static inline bool is_number(const maker *m, tp_node_id id)
{
    const tp_dtype dtype = node_of(m, id)->dtype;
    return dtype != TP_PRED && dtype != TP_U8;
}

static inline bool is_any(const maker *m, tp_node_id id)
{
    (void)m;
    (void)id;
    return true;
}

/* Another node of the same dtype whose shape broadcasts with a's to something of moderate size. */
static inline tp_node_id draw_partner(maker *m, tp_node_id a)
{
    for (int i = 0; i < 60; i++) {
        const tp_node_id b = draw_node(m);
        const tp_shape left = shape_of(m, a), right = shape_of(m, b);
        tp_shape both;
        if (node_of(m, b)->dtype != node_of(m, a)->dtype) continue;
        if (tp_shape_broadcast(&left, &right, &both) != TPUCL_OK) continue;
        if (tp_shape_elems(&both) <= MAX_ELEMS) return b;
    }
    return a;
}

/* About so many ops of all kinds, added to what is there. */
void random_graph_add_ops(maker *m, int32_t ops);

#endif
