/* SPDX-License-Identifier: Apache-2.0
 * A session's state, copied. */
#include <string.h>
#include "core/alloc.h"
#include "train/param_store.h"
#include "train/snapshot.h"
#include "train/snapshot_epochs.h"
#include "train/snapshot_internal.h"

typedef struct taker {
    tp_session *session;
    tp_param_store store;
    tp_arena *arena;
    tp_tensor_entry *params, *state;
    int32_t param_count, state_count;
} taker;

const char *tp_snapshot_name(tp_arena *arena, const char *variable, int32_t group)
{
    return group ? tp_arena_printf(arena, "group/%d/%s", group, variable) : variable;
}

static tpucl_status take_variable(taker *t, int32_t index, int32_t group)
{
    const tp_param info = tp_param_store_param(&t->store, index);
    const char *name = tp_snapshot_name(t->arena, info.name, group);
    void *data = tp_arena_alloc(t->arena, info.bytes);
    if (!name || !data) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_param_store_read(&t->store, index, group, data));
    const tp_tensor_entry entry = {name, info.dtype, info.shape, data, info.bytes};
    if (info.is_model && group == 0)
        t->params[t->param_count++] = entry;
    else
        t->state[t->state_count++] = entry;
    return TPUCL_OK;
}

static void put_double(uint8_t *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(bits >> (8 * i));
}

static tpucl_status take_sums(taker *t)
{
    const tp_session *session = t->session;
    const tp_metric_sums *sums = &session->running.sums;
    const int64_t count = TP_SNAPSHOT_SUMS + session->metrics.value_count;
    const int64_t dims[] = {8 * count};
    uint8_t *bytes = tp_arena_alloc(t->arena, (size_t)dims[0]);
    tp_tensor_entry entry = {TP_SNAPSHOT_SUMS_NAME, TP_U8, {0}, bytes, (uint64_t)dims[0]};
    if (!bytes) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_shape_init(&entry.shape, 1, dims));
    put_double(bytes, sums->loss);
    put_double(bytes + 8, sums->weight);
    put_double(bytes + 16, sums->correct);
    for (int64_t i = 0; i < session->metrics.value_count; i++)
        put_double(bytes + 8 * (TP_SNAPSHOT_SUMS + i), sums->values ? sums->values[i] : 0);
    t->state[t->state_count++] = entry;
    return TPUCL_OK;
}

static tpucl_status write_config(tp_json_writer *writer, const tp_config *config)
{
    char *text = NULL;
    tp_json_document *document = NULL;
    TP_TRY(tp_config_to_json(config, &text));
    const tpucl_status status = tp_json_parse(text, strlen(text), "configuration", &document);
    if (status == TPUCL_OK) tp_json_write_value(writer, tp_json_root(document));
    tp_json_destroy(document);
    tp_free(text);
    return status;
}

static tpucl_status make_state(const tp_session *session, const tp_snapshot_monitor *monitor,
                               char **out_text)
{
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_key(&writer, "config");
    const tpucl_status status = write_config(&writer, session->config);
    if (status != TPUCL_OK) {
        tp_json_writer_deinit(&writer);
        return status;
    }
    tp_json_put_int(&writer, "groups", tp_session_group_count(session));
    tp_json_put_int(&writer, "global_batch", session->config->global_batch);
    tp_json_put_int(&writer, "train_examples", session->train_count);
    tp_json_put_int(&writer, "epoch_steps", session->running.steps);
    tp_json_put_int(&writer, "epoch_examples", session->running.examples);
    if (*monitor->name) {
        tp_json_put_string(&writer, "monitor", monitor->name);
        tp_json_put_double(&writer, "monitor_value", monitor->value);
    }
    tp_json_key(&writer, "epochs");
    tp_snapshot_write_epochs(&writer, session);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

static tpucl_status take(taker *t, const tp_snapshot_monitor *monitor, tp_snapshot *snapshot)
{
    const int32_t groups = tp_session_group_count(t->session);
    const int32_t count = tp_param_store_count(&t->store);
    const size_t most = (size_t)count * (size_t)groups + 1;
    t->params = TP_ARENA_NEW_ARRAY(t->arena, tp_tensor_entry, (size_t)count + 1);
    t->state = TP_ARENA_NEW_ARRAY(t->arena, tp_tensor_entry, most);
    if (!t->params || !t->state) return TPUCL_OUT_OF_MEMORY;
    for (int32_t g = 0; g < groups; g++)
        for (int32_t i = 0; i < count; i++)
            TP_TRY(take_variable(t, i, g));
    TP_TRY(take_sums(t));
    snapshot->step = t->session->steps_done;
    snapshot->parts[0] = (tp_checkpoint_part){"params", t->params, t->param_count};
    snapshot->parts[1] = (tp_checkpoint_part){"state", t->state, t->state_count};
    return make_state(t->session, monitor, &snapshot->state);
}

tpucl_status tp_snapshot_take(tp_session *session, const tp_snapshot_monitor *monitor,
                              tp_snapshot **out_snapshot)
{
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create((size_t)1 << 20, &arena));
    tp_snapshot *snapshot = TP_ARENA_NEW(arena, tp_snapshot);
    if (!snapshot) {
        tp_arena_destroy(arena);
        return TPUCL_OUT_OF_MEMORY;
    }
    snapshot->arena = arena;
    taker t = {.session = session, .store = tp_session_params(session), .arena = arena};
    const tpucl_status status = take(&t, monitor, snapshot);
    if (status != TPUCL_OK) {
        tp_snapshot_destroy(snapshot);
        return status;
    }
    *out_snapshot = snapshot;
    return TPUCL_OK;
}

void tp_snapshot_destroy(tp_snapshot *snapshot)
{
    if (!snapshot) return;
    tp_free(snapshot->state);
    tp_arena_destroy(snapshot->arena);
}
