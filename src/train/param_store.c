/* SPDX-License-Identifier: Apache-2.0
 * Variables of a training, wherever they are. */
#include <string.h>
#include "num/flush.h"
#include "train/param_store.h"
#include "train/session_internal.h"

int32_t tp_param_store_count(const tp_param_store *store)
{
    return store->variables ? tp_variables_count(store->variables) : store->graph->variable_count;
}

tp_param tp_param_store_param(const tp_param_store *store, int32_t index)
{
    if (store->variables) {
        const tp_program_variable *info = tp_variables_info(store->variables, index);
        return (tp_param){info->name, info->dtype, info->shape, info->bytes, info->is_model};
    }
    const tp_variable *variable = &store->graph->variables[index];
    return (tp_param){variable->name, variable->dtype, variable->shape,
                      (uint64_t)tp_shape_bytes(&variable->shape, variable->dtype),
                      variable->is_model};
}

int32_t tp_param_store_find(const tp_param_store *store, const char *name)
{
    return store->variables ? tp_variables_find(store->variables, name)
                            : tp_graph_find_variable(store->graph, name);
}

tpucl_status tp_param_store_read(const tp_param_store *store, int32_t index, int32_t group,
                                 void *out_data)
{
    if (store->variables) return tp_variables_read(store->variables, index, group, out_data);
    const tp_host_tensor *tensor = tp_reference_variable(store->reference, group, index);
    memcpy(out_data, tensor->data, (size_t)tp_param_store_param(store, index).bytes);
    return TPUCL_OK;
}

tpucl_status tp_param_store_write(const tp_param_store *store, int32_t index, int32_t group,
                                  const void *data)
{
    if (store->variables) return tp_variables_write(store->variables, index, group, data);
    tp_host_tensor *tensor = tp_reference_variable(store->reference, group, index);
    memcpy(tensor->data, data, (size_t)tp_param_store_param(store, index).bytes);
    tp_flush_array(tensor->dtype, tensor->data, (uint64_t)tp_shape_elems(&tensor->shape));
    return TPUCL_OK;
}

tp_param_store tp_session_params(tp_session *session)
{
    if (!session->reference) return (tp_param_store){.variables = tp_session_variables(session)};
    return (tp_param_store){.reference = session->reference, .graph = session->train.graph};
}
