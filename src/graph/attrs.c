/* SPDX-License-Identifier: Apache-2.0
 * Attributes: checks against an op's list, copies, comparison. Everything that a parsed text or a
 * builder call can get wrong about attributes as such is found here, so that ops check only what
 * they mean. */
#include "graph/attrs.h"

#include <math.h>
#include <string.h>

#include "core/str.h"

const char *tp_attr_kind_name(tp_attr_kind kind)
{
    static const char *const names[] = {"int", "float", "ints", "text", "data"};
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "invalid";
}

static const tp_attr *find_attr(const tp_attr *attrs, int32_t count, const char *name)
{
    for (int32_t i = 0; i < count; ++i)
        if (strcmp(attrs[i].name, name) == 0) return &attrs[i];
    return NULL;
}

static bool is_choice(const char *choices, const char *text)
{
    tp_view rest = tp_view_of(choices), choice;
    while (tp_view_next(&rest, '|', &choice))
        if (tp_view_equal_text(choice, text)) return true;
    return false;
}

static tpucl_status check_value(const tp_opdef *def, const tp_attr_spec *spec, const tp_attr *attr)
{
    if (attr->kind != spec->kind)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' is of kind %s, expected %s",
                       attr->name, def->name, tp_attr_kind_name(attr->kind),
                       tp_attr_kind_name(spec->kind));
    if (attr->kind == TP_ATTR_TEXT && !attr->text)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' is a null text", attr->name,
                       def->name);
    if (attr->kind == TP_ATTR_TEXT && spec->choices && !is_choice(spec->choices, attr->text))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' is '%s', expected one of %s",
                       attr->name, def->name, attr->text, spec->choices);
    if (attr->kind == TP_ATTR_FLOAT && (double)(float)attr->float_value != attr->float_value)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' is %.17g, which is no f32",
                       attr->name, def->name, attr->float_value);
    if (attr->kind == TP_ATTR_INTS &&
        (attr->ints_count < 0 || (attr->ints_count > 0 && attr->ints == NULL)))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' has no numbers", attr->name,
                       def->name);
    if (attr->kind == TP_ATTR_DATA && attr->data_bytes > 0 && attr->data == NULL)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' has no data", attr->name,
                       def->name);
    return TPUCL_OK;
}

tpucl_status tp_attrs_check(const tp_opdef *def, const tp_attr *attrs, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        if (find_attr(attrs, i, attrs[i].name))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "attribute '%s' of '%s' is given twice",
                           attrs[i].name, def->name);
        const tp_attr_spec *spec = def->attrs;
        while (spec && spec->name && strcmp(spec->name, attrs[i].name) != 0)
            ++spec;
        if (!spec || !spec->name)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' takes no attribute '%s'", def->name,
                           attrs[i].name);
        TP_TRY(check_value(def, spec, &attrs[i]));
    }
    for (const tp_attr_spec *spec = def->attrs; spec && spec->name; ++spec)
        if (!spec->is_optional && !find_attr(attrs, count, spec->name))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' needs attribute '%s' (%s)", def->name,
                           spec->name, spec->doc);
    return TPUCL_OK;
}

static tpucl_status copy_bytes(tp_arena *arena, const void *bytes, size_t count, const void **out)
{
    void *copy = tp_arena_alloc(arena, count);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    if (count) memcpy(copy, bytes, count);
    *out = copy;
    return TPUCL_OK;
}

static tpucl_status copy_attr(tp_arena *arena, const tp_attr *src, tp_attr *dst)
{
    *dst = *src;
    if (!(dst->name = tp_arena_strdup(arena, src->name))) return TPUCL_OUT_OF_MEMORY;
    if (src->kind == TP_ATTR_TEXT && !(dst->text = tp_arena_strdup(arena, src->text)))
        return TPUCL_OUT_OF_MEMORY;
    const void *copy = NULL;
    if (src->kind == TP_ATTR_INTS) {
        TP_TRY(copy_bytes(arena, src->ints, (size_t)src->ints_count * sizeof(int64_t), &copy));
        dst->ints = copy;
    }
    if (src->kind == TP_ATTR_DATA) {
        TP_TRY(copy_bytes(arena, src->data, (size_t)src->data_bytes, &copy));
        dst->data = copy;
    }
    return TPUCL_OK;
}

tpucl_status tp_attrs_copy(tp_arena *arena, const tp_attr *attrs, int32_t count,
                           const tp_attr **out_attrs)
{
    *out_attrs = NULL;
    if (count == 0) return TPUCL_OK;
    tp_attr *copy = TP_ARENA_NEW_ARRAY(arena, tp_attr, (size_t)count);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; ++i)
        TP_TRY(copy_attr(arena, &attrs[i], &copy[i]));
    *out_attrs = copy;
    return TPUCL_OK;
}

static bool values_equal(const tp_attr *a, const tp_attr *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case TP_ATTR_INT:
        return a->int_value == b->int_value;
    case TP_ATTR_FLOAT:
        return memcmp(&a->float_value, &b->float_value, sizeof(double)) == 0;
    case TP_ATTR_TEXT:
        return strcmp(a->text, b->text) == 0;
    case TP_ATTR_INTS:
        return a->ints_count == b->ints_count &&
               (a->ints_count == 0 ||
                memcmp(a->ints, b->ints, (size_t)a->ints_count * sizeof(int64_t)) == 0);
    case TP_ATTR_DATA:
        return a->data_bytes == b->data_bytes &&
               (a->data_bytes == 0 || memcmp(a->data, b->data, (size_t)a->data_bytes) == 0);
    }
    return false;
}

bool tp_attrs_equal(const tp_attr *a, int32_t a_count, const tp_attr *b, int32_t b_count)
{
    if (a_count != b_count) return false;
    for (int32_t i = 0; i < a_count; ++i) {
        const tp_attr *other = find_attr(b, b_count, a[i].name);
        if (!other || !values_equal(&a[i], other)) return false;
    }
    return true;
}

const tp_attr *tp_node_attr(const tp_node *node, const char *name)
{
    return find_attr(node->attrs, node->attr_count, name);
}

int64_t tp_node_attr_int(const tp_node *node, const char *name, int64_t fallback)
{
    const tp_attr *attr = tp_node_attr(node, name);
    return attr ? attr->int_value : fallback;
}

double tp_node_attr_float(const tp_node *node, const char *name, double fallback)
{
    const tp_attr *attr = tp_node_attr(node, name);
    return attr ? attr->float_value : fallback;
}

const char *tp_node_attr_text(const tp_node *node, const char *name, const char *fallback)
{
    const tp_attr *attr = tp_node_attr(node, name);
    return attr ? attr->text : fallback;
}

const int64_t *tp_node_attr_ints(const tp_node *node, const char *name, int32_t *out_count)
{
    const tp_attr *attr = tp_node_attr(node, name);
    *out_count = attr ? attr->ints_count : 0;
    return attr ? attr->ints : NULL;
}

tpucl_status tp_node_attr_shape(const tp_node *node, const char *name, tp_shape *out_shape)
{
    int32_t rank;
    const int64_t *dims = tp_node_attr_ints(node, name, &rank);
    return tp_shape_init(out_shape, rank, dims);
}

tpucl_status tp_node_attr_dtype(const tp_node *node, const char *name, tp_dtype *out_dtype)
{
    return tp_dtype_parse(tp_node_attr_text(node, name, ""), out_dtype);
}
