/* SPDX-License-Identifier: Apache-2.0
 * What a device keeps between steps: every variable with its kind, dtype and bytes. See check.h.
 */
#include <string.h>
#include "check/rules.h"

static const char *kind_of(const tp_variable *variable)
{
    static const char *const roles[] = {
        [TP_ROLE_FIRST_MOMENT] = "first_moment",
        [TP_ROLE_SECOND_MOMENT] = "second_moment",
        [TP_ROLE_AVERAGE] = "average",
    };
    if (variable->role != TP_ROLE_NONE) return roles[variable->role];
    if (!variable->is_model) return "scalar";
    return variable->is_trainable ? "weight" : "fixed";
}

const char *tp_check_state_kind(int32_t index)
{
    static const char *const kinds[] = {"weight",        "fixed",   "first_moment",
                                        "second_moment", "average", "scalar"};
    return index >= 0 && (size_t)index < sizeof kinds / sizeof *kinds ? kinds[index] : NULL;
}

tpucl_status tp_check_list_state(const tp_graph *graph, tp_check_report *report)
{
    for (int32_t i = 0; i < graph->variable_count; i++) {
        const tp_variable *variable = &graph->variables[i];
        char shape[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&variable->shape, shape, sizeof shape);
        const tp_check_state state = {
            .name = tp_arena_strdup(report->arena, variable->name),
            .kind = kind_of(variable),
            .of = tp_arena_strdup(report->arena, variable->slot_of ? variable->slot_of : ""),
            .dtype = tp_dtype_name(variable->dtype),
            .shape = tp_arena_strdup(report->arena, shape),
            .elems = tp_shape_elems(&variable->shape),
            .bytes = tp_shape_bytes(&variable->shape, variable->dtype)};
        if (!state.name || !state.of || !state.shape) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_check_states_push(&report->states, state));
    }
    return TPUCL_OK;
}
