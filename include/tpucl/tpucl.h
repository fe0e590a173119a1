/* SPDX-License-Identifier: Apache-2.0
 * Umbrella header of the first-tier API. */
#ifndef TPUCL_H
#define TPUCL_H

#include <tpucl/export.h>
#include <tpucl/log.h>
#include <tpucl/status.h>
#include <tpucl/version.h>

#endif
