/* SPDX-License-Identifier: Apache-2.0
 * Figures of a topology file: {"value": 700, "unit": "GB/s", "source": "...", "note": "..."}. */
#ifndef TP_TOPO_FIGURE_H
#define TP_TOPO_FIGURE_H

#include "core/arena.h"
#include "core/json_write.h"
#include "core/problems.h"
#include "topo/topology.h"

/* Reads the "figures" object; what is wrong is added to `problems`. Fails for lack of memory only. */
tpucl_status tp_figures_read(const tp_json *object, tp_arena *arena, tp_problems *problems,
                             tp_figure out_figures[TP_FIGURE_COUNT]) TPUCL_MUST_CHECK;

/* The known ones as an object, in their base units. */
void tp_figures_write(const tp_figure figures[TP_FIGURE_COUNT], tp_json_writer *writer);

#endif
