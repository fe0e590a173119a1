/* SPDX-License-Identifier: Apache-2.0
 * All ops. */
#ifndef TP_OPS_REGISTRY_H
#define TP_OPS_REGISTRY_H

#include "graph/opdef.h"

/* The table to create graphs with; static, immutable. */
const tp_op_table *tp_ops_registry(void);

/* docs/ops.md; free with tp_free. */
tpucl_status tp_ops_markdown(char **out_text) TPUCL_MUST_CHECK;

#endif
