/* SPDX-License-Identifier: Apache-2.0
 * Global batch to per-core infeed records. */
#include <string.h>
#include "train/session_internal.h"
#include "train/shard.h"

float tp_session_group_weight(const tp_session *session, int32_t core, int64_t valid)
{
    return tp_shard_group_weight(
        session->group_cores, (int32_t)session->config->cross_shard.group_size,
        session->topology->cores, core, session->config->per_core_batch, valid);
}

void tp_session_fill_feed(const tp_session *session, const tp_program *program,
                          const tp_source *source, void *const *arrays, int64_t valid,
                          const tp_feed *feed)
{
    int64_t batch = session->config->per_core_batch;
    for (int32_t core = 0; core < session->map->core_count; core++) {
        char *record = tp_feed_record(feed, core);
        int64_t rows = tp_shard_rows(core, batch, valid);
        for (int32_t i = 0; i < program->input_count; i++) {
            const tp_program_port *port = &program->inputs[i];
            char *to = record + program->buffers[port->buffer].offset_bytes;
            int32_t field = tp_source_find_field(source, port->name);
            if (field >= 0) {
                uint64_t bytes = source->fields[field].bytes * (uint64_t)batch;
                memcpy(to, (const char *)arrays[field] + (uint64_t)core * bytes, bytes);
            } else if (strcmp(port->name, "weight") == 0) {
                tp_shard_fill_weights((float *)(void *)to, batch, rows);
            } else if (strcmp(port->name, "denominator") == 0) {
                float denominator = tp_session_group_weight(session, core, valid);
                memcpy(to, &denominator, sizeof denominator);
            }
        }
    }
}
