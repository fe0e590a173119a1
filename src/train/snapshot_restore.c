/* SPDX-License-Identifier: Apache-2.0
 * A session put where a checkpoint's training was. */
#include <inttypes.h>
#include <string.h>
#include "core/alloc.h"
#include "core/log.h"
#include "core/problems.h"
#include "train/param_store.h"
#include "train/snapshot.h"
#include "train/snapshot_epochs.h"
#include "train/snapshot_internal.h"

typedef struct restorer {
    tp_session *session;
    const tp_checkpoint *checkpoint;
    tp_param_store store;
    tp_arena *arena;
    const tp_safetensors *params, *state; /* NULL: not there */
    tp_session_epoch_list epochs;
    int64_t epoch_steps, epoch_examples;
} restorer;

static const tp_tensor_entry *find(const restorer *r, const char *name)
{
    const tp_tensor_entry *entry = r->params ? tp_safetensors_find(r->params, name) : NULL;
    return entry || !r->state ? entry : tp_safetensors_find(r->state, name);
}

/* ---- what has to agree ---- */

static void check_variable(restorer *r, int32_t index, int32_t group, tp_problems *problems)
{
    char wanted[TP_SHAPE_TEXT_MAX], found[TP_SHAPE_TEXT_MAX];
    const tp_param info = tp_param_store_param(&r->store, index);
    const char *name = tp_snapshot_name(r->arena, info.name, group);
    const tp_tensor_entry *entry = name ? find(r, name) : NULL;
    if (!entry) {
        tp_problems_add(problems, "'%s' is missing", name ? name : info.name);
        return;
    }
    if (entry->dtype == info.dtype && tp_shape_equal(&entry->shape, &info.shape)) return;
    tp_shape_format(&info.shape, wanted, sizeof wanted);
    tp_shape_format(&entry->shape, found, sizeof found);
    tp_problems_add(problems, "'%s' is %s%s, this training has %s%s", name,
                    tp_dtype_name(entry->dtype), found, tp_dtype_name(info.dtype), wanted);
}

static void check_count(const tp_json *state, const char *key, int64_t wanted, const char *meaning,
                        tp_problems *problems)
{
    int64_t found = -1;
    if (!tp_problems_add_failed(problems, tp_json_get_int64(state, key, 0, INT64_MAX, &found)))
        return;
    if (found != wanted)
        tp_problems_add(problems, "%s is %" PRId64 " there and %" PRId64 " here", meaning, found,
                        wanted);
}

static void check_sums(const restorer *r, tp_problems *problems)
{
    const tp_tensor_entry *sums = find(r, TP_SNAPSHOT_SUMS_NAME);
    const uint64_t wanted = 8 * (TP_SNAPSHOT_SUMS + (uint64_t)r->session->metrics.value_count);
    if (!sums)
        tp_problems_add(problems, "'%s' is missing", TP_SNAPSHOT_SUMS_NAME);
    else if (sums->dtype != TP_U8 || sums->bytes != wanted)
        tp_problems_add(problems,
                        "'%s' has %" PRIu64 " bytes, the metrics of this training %" PRIu64,
                        TP_SNAPSHOT_SUMS_NAME, sums->bytes, wanted);
}

/* What the position in an epoch means. */
static void check_position(restorer *r, const tp_json *state, tp_problems *problems)
{
    const tp_session *session = r->session;
    const int64_t step = tp_checkpoint_step(r->checkpoint);
    check_count(state, "groups", tp_session_group_count(session), "the number of replica groups",
                problems);
    check_count(state, "global_batch", session->config->global_batch, "the global batch", problems);
    check_count(state, "train_examples", session->train_count, "the number of examples", problems);
    tp_problems_add_failed(problems, tp_json_get_int64(state, "epoch_steps", 0,
                                                       session->steps_per_epoch, &r->epoch_steps));
    tp_problems_add_failed(
        problems, tp_json_get_int64(state, "epoch_examples", 0, INT64_MAX, &r->epoch_examples));
    if (step > session->steps_total)
        tp_problems_add(problems, "it is of step %" PRId64 ", this training has %" PRId64 " steps",
                        step, session->steps_total);
}

static tpucl_status check(restorer *r)
{
    const tp_json *state = tp_checkpoint_state(r->checkpoint), *epochs = NULL;
    tp_problems problems = {0};
    check_position(r, state, &problems);
    for (int32_t g = 0; g < tp_session_group_count(r->session); g++)
        for (int32_t i = 0; i < tp_param_store_count(&r->store); i++)
            check_variable(r, i, g, &problems);
    check_sums(r, &problems);
    tpucl_status status = tp_json_require(state, "epochs", TP_JSON_ARRAY, &epochs);
    if (status == TPUCL_OK)
        status = tp_snapshot_read_epochs(epochs, r->session->metrics.count, &r->epochs);
    if (!tp_problems_add_failed(&problems, status)) tp_error_clear();
    status = tp_problems_result(&problems, TPUCL_INVALID_CONFIG, tp_checkpoint_name(r->checkpoint));
    if (status != TPUCL_OK && problems.count == 1)
        tp_error_note("'%.300s' is not of this training", tp_checkpoint_name(r->checkpoint));
    return status;
}

/* ---- what differs and may: said once ---- */

/* Longer, shorter, or only where things go: what anybody continues a training for. */
static bool may_differ_silently(const char *path)
{
    static const char *const keys[] = {
        "epochs",         "steps",      "name",       "log_every",     "log_dir",     "output_dir",
        "steps_per_loop", "wave_cores", "checkpoint", "data.prefetch", "data.folder", "topology"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t length = strlen(keys[i]);
        if (strncmp(path, keys[i], length) == 0 && (!path[length] || path[length] == '.'))
            return true;
    }
    return false;
}

static bool is_same(const tp_json *a, const tp_json *b);

static bool is_same_list(const tp_json *a, const tp_json *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const tp_json *other =
            a->kind == TP_JSON_OBJECT ? tp_json_member(b, a->items[i].key) : &b->items[i];
        if (!other || !is_same(&a->items[i], other)) return false;
    }
    return true;
}

static bool is_same(const tp_json *a, const tp_json *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case TP_JSON_OBJECT:
    case TP_JSON_ARRAY:
        return a->count == b->count && is_same_list(a, b);
    case TP_JSON_STRING:
        return strcmp(a->string, b->string) == 0;
    case TP_JSON_INTEGER:
        return a->integer == b->integer;
    case TP_JSON_NUMBER:
        return a->number == b->number;
    case TP_JSON_BOOL:
        return a->boolean == b->boolean;
    case TP_JSON_NULL:
        return true;
    }
    return false;
}

/* Keys of the configuration, as far as both are objects. */
static void add_differences(const tp_json *now, const tp_json *then, tp_str_builder *out)
{
    for (size_t i = 0; i < now->count; i++) {
        char path[256];
        const tp_json *value = &now->items[i], *other = tp_json_member(then, value->key);
        if (other && value->kind == TP_JSON_OBJECT && other->kind == TP_JSON_OBJECT) {
            add_differences(value, other, out);
            continue;
        }
        tp_json_path(value, path, sizeof path);
        if ((other && is_same(value, other)) || may_differ_silently(path)) continue;
        if (out->length) tp_str_append(out, ", ");
        tp_str_append(out, path);
    }
}

static tpucl_status warn_of_differences(const restorer *r)
{
    const tp_json *then = tp_json_member(tp_checkpoint_state(r->checkpoint), "config");
    tp_json_document *document = NULL;
    tp_str_builder keys = {0};
    char *text = NULL;
    TP_TRY(tp_config_to_json(r->session->config, &text));
    tpucl_status status = tp_json_parse(text, strlen(text), "configuration", &document);
    if (status == TPUCL_OK && then) add_differences(tp_json_root(document), then, &keys);
    if (status == TPUCL_OK && keys.length)
        TP_LOG_WARNING("train",
                       "the configuration differs from that of '%s' in %.*s; what comes out is "
                       "what neither of them gives alone",
                       tp_checkpoint_name(r->checkpoint), (int)keys.length, keys.data);
    tp_str_builder_deinit(&keys);
    tp_json_destroy(document);
    tp_free(text);
    return status;
}

/* ---- and back ---- */

static double get_double(const uint8_t *from)
{
    uint64_t bits = 0;
    double value;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)from[i] << (8 * i);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void restore_position(restorer *r)
{
    tp_session *session = r->session;
    const uint8_t *bytes = find(r, TP_SNAPSHOT_SUMS_NAME)->data;
    tp_metric_sums *sums = &session->running.sums;
    session->running = (tp_session_running){.steps = r->epoch_steps, .examples = r->epoch_examples};
    *sums = tp_metrics_begin(session, session->train_values);
    sums->loss = get_double(bytes);
    sums->weight = get_double(bytes + 8);
    sums->correct = get_double(bytes + 16);
    for (int64_t i = 0; sums->values && i < session->metrics.value_count; i++)
        sums->values[i] = get_double(bytes + 8 * (TP_SNAPSHOT_SUMS + i));
    tp_session_epoch_list_deinit(&session->epochs);
    session->epochs = r->epochs;
    r->epochs = (tp_session_epoch_list){0};
    session->steps_done = tp_checkpoint_step(r->checkpoint);
}

static tpucl_status restore(restorer *r)
{
    TP_TRY(check(r));
    TP_TRY(warn_of_differences(r));
    for (int32_t g = 0; g < tp_session_group_count(r->session); g++)
        for (int32_t i = 0; i < tp_param_store_count(&r->store); i++) {
            const char *name =
                tp_snapshot_name(r->arena, tp_param_store_param(&r->store, i).name, g);
            if (!name) return TPUCL_OUT_OF_MEMORY;
            TP_TRY(tp_param_store_write(&r->store, i, g, find(r, name)->data));
        }
    restore_position(r);
    return TPUCL_OK;
}

tpucl_status tp_snapshot_restore(tp_session *session, const tp_checkpoint *checkpoint)
{
    restorer r = {.session = session,
                  .checkpoint = checkpoint,
                  .store = tp_session_params(session),
                  .params = tp_checkpoint_find_part(checkpoint, "params"),
                  .state = tp_checkpoint_find_part(checkpoint, "state")};
    TP_TRY(tp_arena_create(0, &r.arena));
    const tpucl_status status = restore(&r);
    tp_session_epoch_list_deinit(&r.epochs);
    tp_arena_destroy(r.arena);
    return status;
}
