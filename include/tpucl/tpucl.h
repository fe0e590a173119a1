/* SPDX-License-Identifier: Apache-2.0
 * Umbrella header of the first tier of the API: the calls whose meaning stays within a major
 * version. The second tier (run.h, tools.h) is included by those who want it. docs/api.md tells
 * the story. */
#ifndef TPUCL_H
#define TPUCL_H

#include <tpucl/dataset.h>
#include <tpucl/export.h>
#include <tpucl/graph.h>
#include <tpucl/log.h>
#include <tpucl/ops.h>
#include <tpucl/program.h>
#include <tpucl/runtime.h>
#include <tpucl/status.h>
#include <tpucl/trainer.h>
#include <tpucl/types.h>
#include <tpucl/version.h>

#endif
