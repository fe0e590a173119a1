/* SPDX-License-Identifier: Apache-2.0
 * Global batch to per-core infeed records. */
#include <string.h>
#include "train/session_internal.h"

/* Sum of weights of each core's replica group: its real rows. */
float tp_session_group_weight(const tp_session *session, int32_t core, int64_t valid)
{
    const tp_config *config = session->config;
    int64_t batch = config->per_core_batch;
    if (!session->groups) return (float)valid;
    int64_t size = config->cross_shard.group_size, sum = 0;
    int64_t count = (int64_t)config->cross_shard.groups.count / size;
    for (int64_t g = 0; g < count; g++) {
        bool is_mine = false;
        int64_t weight = 0;
        for (int64_t i = 0; i < size; i++) {
            int64_t member = session->groups[g].cores[i], rows = valid - member * batch;
            is_mine = is_mine || member == core;
            weight += rows < 0 ? 0 : rows < batch ? rows : batch;
        }
        if (is_mine) sum = weight;
    }
    return sum > 0 ? (float)sum : 1.0f; /* a group without examples: nothing is divided */
}

static void fill_weights(float *weights, int64_t batch, int64_t valid_rows)
{
    for (int64_t row = 0; row < batch; row++)
        weights[row] = row < valid_rows ? 1.0f : 0.0f;
}

void tp_session_fill_feed(const tp_session *session, const tp_program *program,
                          const tp_source *source, void *const *arrays, int64_t valid,
                          const tp_feed *feed)
{
    int64_t batch = session->config->per_core_batch;
    for (int32_t core = 0; core < session->map->core_count; core++) {
        char *record = tp_feed_record(feed, core);
        int64_t rows = valid - core * batch;
        for (int32_t i = 0; i < program->input_count; i++) {
            const tp_program_port *port = &program->inputs[i];
            char *to = record + program->buffers[port->buffer].offset_bytes;
            int32_t field = tp_source_find_field(source, port->name);
            if (field >= 0) {
                uint64_t bytes = source->fields[field].bytes * (uint64_t)batch;
                memcpy(to, (const char *)arrays[field] + (uint64_t)core * bytes, bytes);
            } else if (strcmp(port->name, "weight") == 0) {
                fill_weights((float *)(void *)to, batch, rows);
            } else if (strcmp(port->name, "denominator") == 0) {
                float denominator = tp_session_group_weight(session, core, valid);
                memcpy(to, &denominator, sizeof denominator);
            }
        }
    }
}
