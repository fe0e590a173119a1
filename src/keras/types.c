/* SPDX-License-Identifier: Apache-2.0
 * Which layers and arguments tpucl has, as the mapping asks for them. */
#include <string.h>
#include "keras/import.h"
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

bool tp_keras_has_argument(const char *type, const char *argument)
{
    const tp_layer_type *found = find(type);
    for (const tp_layer_arg *arg = found ? found->arguments : NULL; arg && arg->name; arg++)
        if (strcmp(arg->name, argument) == 0) return true;
    return false;
}
