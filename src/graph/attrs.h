/* SPDX-License-Identifier: Apache-2.0
 * Making and checking attributes. The constructors borrow what they are given; tp_graph_add()
 * copies it. */
#ifndef TP_GRAPH_ATTRS_H
#define TP_GRAPH_ATTRS_H

#include "graph/opdef.h"

static inline tp_attr tp_attr_int(const char *name, int64_t value)
{
    return (tp_attr){.name = name, .kind = TP_ATTR_INT, .int_value = value};
}
static inline tp_attr tp_attr_float(const char *name, double value)
{
    return (tp_attr){.name = name, .kind = TP_ATTR_FLOAT, .float_value = value};
}
static inline tp_attr tp_attr_ints(const char *name, const int64_t *ints, int32_t count)
{
    return (tp_attr){.name = name, .kind = TP_ATTR_INTS, .ints = ints, .ints_count = count};
}
static inline tp_attr tp_attr_text(const char *name, const char *text)
{
    return (tp_attr){.name = name, .kind = TP_ATTR_TEXT, .text = text};
}
static inline tp_attr tp_attr_data(const char *name, const void *data, uint64_t bytes)
{
    return (tp_attr){.name = name, .kind = TP_ATTR_DATA, .data = data, .data_bytes = bytes};
}
/* `shape` is borrowed, too. */
static inline tp_attr tp_attr_shape(const char *name, const tp_shape *shape)
{
    return tp_attr_ints(name, shape->dims, shape->rank);
}

/* "int", "float", "ints", "text", "data". */
const char *tp_attr_kind_name(tp_attr_kind kind);

/* All attributes are listed by the op, of the right kind, among the choices, given once; none that
 * is required is missing. */
tpucl_status tp_attrs_check(const tp_opdef *def, const tp_attr *attrs, int32_t count);

/* A deep copy in `arena`; *out_attrs is NULL for no attributes. */
tpucl_status tp_attrs_copy(tp_arena *arena, const tp_attr *attrs, int32_t count,
                           const tp_attr **out_attrs);

/* Same names, kinds and values (floats by their bits), in any order. */
bool tp_attrs_equal(const tp_attr *a, int32_t a_count, const tp_attr *b, int32_t b_count);

/* The attributes of an op that reads them as a shape ("shape") and a dtype ("dtype"). */
tpucl_status tp_node_attr_shape(const tp_node *node, const char *name, tp_shape *out_shape);
tpucl_status tp_node_attr_dtype(const tp_node *node, const char *name, tp_dtype *out_dtype);

#endif
