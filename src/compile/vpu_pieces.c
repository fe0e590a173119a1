/* SPDX-License-Identifier: Apache-2.0 */
#include "compile/vpu_pieces.h"

#include "graph/attrs.h"
#include "graph/opdef.h"

/* Below this many elements a loop over a piece is not worth its beginning and end. */
#define LEAST_PIECE 16
/* Nodes looked at, each as often as there are ways to it. */
#define MAX_VISITS 256

typedef struct piece_walk {
    const tp_graph *graph;
    const bool *is_stored;
    tp_shape shape; /* of the root */
    int64_t piece;  /* divides all borders so far; 0: there are none */
    int32_t visits;
} piece_walk;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A border between what comes from different tensors. */
static void add_border(piece_walk *w, int64_t at)
{
    const int64_t all = w->shape.dims[w->shape.rank - 1];
    if (at > 0 && at < all) w->piece = common_divisor(w->piece == 0 ? all : w->piece, at);
}

static void add_pad(piece_walk *w, const tp_node *node)
{
    int32_t count;
    const int64_t *low = tp_node_attr_ints(node, "low", &count);
    const int last = w->shape.rank - 1;
    const int64_t dim = tp_graph_node(w->graph, node->inputs[0])->shape.dims[last];
    add_border(w, low[last]);
    add_border(w, low[last] + dim);
}

static void add_concatenate(piece_walk *w, const tp_node *node)
{
    const int last = w->shape.rank - 1;
    if (tp_node_attr_int(node, "axis", 0) != last) return;
    int64_t end = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        end += tp_graph_node(w->graph, node->inputs[i])->shape.dims[last];
        add_border(w, end);
    }
}

/* Through what is computed element by element of tensors of the root's shape. */
static void walk(piece_walk *w, tp_node_id id, bool is_root)
{
    const tp_node *node = tp_graph_node(w->graph, id);
    if ((w->is_stored[id] && !is_root) || ++w->visits > MAX_VISITS ||
        !tp_shape_equal(&node->shape, &w->shape))
        return;
    if (tp_node_is(node, "pad")) add_pad(w, node);
    if (tp_node_is(node, "concatenate")) add_concatenate(w, node);
    if (node->def->op_class != TP_OP_ELEMENTWISE) return;
    for (int32_t i = 0; i < node->input_count; i++)
        walk(w, node->inputs[i], false);
}

/* The last axis' extent of a piece; that of the whole when it is none. */
static int64_t find_piece(piece_walk *w, const tp_node_id *roots, int32_t root_count)
{
    const int64_t all = w->shape.dims[w->shape.rank - 1];
    for (int32_t i = 0; i < root_count; i++)
        walk(w, roots[i], true);
    const bool is_good = w->visits <= MAX_VISITS && w->piece >= LEAST_PIECE &&
                         all % w->piece == 0 && all / w->piece <= TP_VPU_MAX_PIECES;
    return is_good ? w->piece : all;
}

bool tp_vpu_pieces_find(const tp_graph *graph, const bool *is_stored, const tp_node_id *roots,
                        int32_t root_count, tp_shape *out_loops)
{
    piece_walk w = {
        .graph = graph, .is_stored = is_stored, .shape = tp_graph_node(graph, roots[0])->shape};
    for (int32_t i = 1; i < root_count; i++) {
        const tp_shape *own = &tp_graph_node(graph, roots[i])->shape;
        if (tp_shape_elems(own) > tp_shape_elems(&w.shape)) w.shape = *own;
    }
    tp_shape piece = w.shape;
    if (piece.rank > 0) piece.dims[piece.rank - 1] = find_piece(&w, roots, root_count);
    bool is_whole = true, is_piece = true;
    for (int32_t i = 0; i < root_count; i++) {
        const tp_shape *own = &tp_graph_node(graph, roots[i])->shape;
        is_whole = is_whole && tp_shape_elems(own) == tp_shape_elems(&w.shape);
        is_piece = is_piece && (tp_shape_equal(own, &w.shape) || tp_shape_equal(own, &piece));
    }
    *out_loops = is_piece ? piece : tp_graph_node(graph, roots[0])->shape;
    return is_whole || is_piece;
}
