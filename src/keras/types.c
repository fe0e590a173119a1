/* SPDX-License-Identifier: Apache-2.0
 * Which layers and arguments tpucl has, as the mapping asks for them. */
#include <string.h>
#include "core/alloc.h"
#include "keras/import.h"
#include "keras/map_internal.h"
#include "model/layer.h"

#define TYPE_ROW(id) &tp_layer_##id,
static const tp_layer_type *const types[] = {TP_LAYER_LIST(TYPE_ROW)};
#undef TYPE_ROW

static const tp_layer_type *find(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i]->name, type) == 0) return types[i];
    return NULL;
}

bool tp_keras_has_type(const char *type)
{
    return find(type) != NULL;
}

const char *tp_keras_container(tp_arena *arena, const char *class_name)
{
    const tp_layer_type *type = find(class_name);
    return type ? type->snake : tp_keras_snake(arena, class_name);
}

static const tp_layer_arg *find_argument(const tp_layer_type *type, const char *argument)
{
    for (const tp_layer_arg *arg = type ? type->arguments : NULL; arg && arg->name; arg++)
        if (strcmp(arg->name, argument) == 0) return arg;
    return NULL;
}

bool tp_keras_passes_mask(const char *class_name)
{
    const tp_layer_type *type = find(class_name);
    return type && type->mask != TP_LAYER_MASK_STOPS;
}

bool tp_keras_null_counts(const char *type, const char *argument)
{
    const tp_layer_type *found = find(type);
    const tp_layer_arg *arg = find_argument(found, argument);
    if (!arg || arg->may_be_null || arg->kind != TP_LAYER_INTS || !found->set_defaults)
        return false;
    char *args = tp_alloc_zero(found->args_bytes);
    if (!args) return false;
    found->set_defaults(args);
    const bool is_given =
        ((const tp_layer_ints *)(const void *)(args + arg->offset))->items != NULL;
    tp_free(args);
    return is_given;
}

bool tp_keras_has_argument(const char *type, const char *argument)
{
    return find_argument(find(type), argument) != NULL;
}
