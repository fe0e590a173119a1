/* SPDX-License-Identifier: Apache-2.0
 * The programs of many checks, compiled beforehand and side by side where the device layer can do that
 * (device/program_build.h): checks build a few at a time, which keeps one processor busy. Nothing here fails: a check
 * whose programs are not there builds them itself.
 */
#ifndef TP_VERIFY_PREPARE_H
#define TP_VERIFY_PREPARE_H

#include "device/program_build.h"
#include "graph/graph.h"
#include "kernel/launch.h"

typedef struct tp_prepare tp_prepare;

/* NULL where there is no memory; every call accepts that. */
tp_prepare *tp_prepare_begin(tp_device *device);
/* The launches of a plan or program; texts are copied. */
void tp_prepare_add_launches(tp_prepare *prepare, const tp_launch *launches, int32_t count);
/* What tp_check_graph compiles, all variants of products allowed. */
void tp_prepare_add_graph(tp_prepare *prepare, const tp_graph *graph);
/* Compiles and frees. */
void tp_prepare_end(tp_prepare *prepare, tp_build_callback callback, void *user);

#endif
