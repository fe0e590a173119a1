/* SPDX-License-Identifier: Apache-2.0
 * All ops. */
#ifndef TP_OPS_REGISTRY_H
#define TP_OPS_REGISTRY_H

#include "graph/opdef.h"

/* The table to create graphs with; static, immutable. */
const tp_op_table *tp_ops_registry(void);

/* Appends an op from outside, which must live as long as the process; graphs that exist know it, too. Not
 * while another thread uses the table. Fails for a name that exists, and beyond TP_OPS_MAX_EXTERNAL. */
enum { TP_OPS_MAX_EXTERNAL = 64 };
tpucl_status tp_ops_register(const tp_opdef *def) TPUCL_MUST_CHECK;

/* docs/ops.md; free with tp_free. */
tpucl_status tp_ops_markdown(char **out_text) TPUCL_MUST_CHECK;

#endif
