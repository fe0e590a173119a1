/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: JSON, run configurations and topologies. Besides the sanitizers it watches that every
 * failure has a sentence and that what was read survives being written and read again. */
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/json_write.h"
#include "topo/config.h"

static void require(bool condition)
{
    if (!condition) abort();
}

/* The record must belong to this failure. */
static void require_sentence(tpucl_status status)
{
    require(tpucl_last_error()->status == status && tpucl_last_error()->message[0]);
}

static void check_json(const char *text, size_t size)
{
    tp_json_document *document, *again;
    tpucl_status status = tp_json_parse(text, size, "fuzz", &document);
    if (status != TPUCL_OK) {
        require_sentence(status);
        return;
    }
    char *first, *second;
    tp_json_writer writer = {.compact = true};
    tp_json_write_value(&writer, tp_json_root(document));
    require(tp_json_writer_finish(&writer, &first) == TPUCL_OK);
    require(tp_json_parse(first, strlen(first), "again", &again) == TPUCL_OK);
    writer.compact = true;
    tp_json_write_value(&writer, tp_json_root(again));
    require(tp_json_writer_finish(&writer, &second) == TPUCL_OK);
    require(strcmp(first, second) == 0);
    tp_topology *topology;
    status = tp_topology_from_json(tp_json_root(document), &topology);
    if (status != TPUCL_OK) require_sentence(status);
    tp_topology_destroy(topology);
    tp_free(first);
    tp_free(second);
    tp_json_destroy(document);
    tp_json_destroy(again);
}

static void check_config(const char *text, size_t size, const tp_topology *topology)
{
    tp_config *config;
    tpucl_status status = tp_config_parse(text, size, "fuzz", NULL, 0, &config);
    if (status == TPUCL_OK) status = tp_config_resolve(config, topology);
    if (status != TPUCL_OK) {
        require_sentence(status);
    } else {
        char *first;
        tp_config *again;
        require(tp_config_to_json(config, &first) == TPUCL_OK);
        require(tp_config_parse(first, strlen(first), "again", NULL, 0, &again) == TPUCL_OK);
        tp_config_destroy(again);
        tp_free(first);
    }
    tp_config_destroy(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tp_topology *topology; /* kept: reading it each time would halve the speed */
    if (!topology) require(tp_topology_load("v2-8", &topology) == TPUCL_OK);
    check_json((const char *)data, size);
    check_config((const char *)data, size, topology);
    return 0;
}
