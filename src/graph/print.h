/* SPDX-License-Identifier: Apache-2.0
 * Graphs as text. The text form is exact: parsing it gives a graph that prints the same text.
 * Grammar, one entry a line, '#' starts a comment:
 *
 *   graph 1
 *   %0 = input() {dtype = "f32", name = "x", shape = [128, 784]} : f32[128,784] "x"
 *   %3 = add(%1, %2) : f32[128,10] "dense/add"
 *   input "x" = %0
 *   variable "dense/kernel" = %1 uniform(-0x1p-4, 0x1p-4) trainable model
 *   update "dense/kernel" = %17
 *   output "loss" = %9
 *
 * Nodes in order of id, then inputs, variables, updates, outputs. Attributes: integers 7, floats
 * 0x1.8p+1 (C's %a), lists [1, 2], texts "..." with \" \\ \n \t \xHH, data as x"0011ff". The type
 * after the colon is what the op's rule infers, repeated for readers and checked by the parser. */
#ifndef TP_GRAPH_PRINT_H
#define TP_GRAPH_PRINT_H

#include "core/str.h"
#include "graph/graph.h"

/* Appends; a failure sticks in the builder. */
void tp_graph_print(const tp_graph *graph, tp_str_builder *out_text);

/* For Graphviz: ops as boxes labelled with op, name and type; variables and inputs stand out;
 * replicated nodes are shaded, updates are dashed. */
tpucl_status tp_graph_print_dot(const tp_graph *graph, tp_str_builder *out_text) TPUCL_MUST_CHECK;

#endif
