/* SPDX-License-Identifier: Apache-2.0
 * Loading by name or path. The built-in topologies are the files of configs/topologies/, put into the
 * library by the build. */
#include "topo/topology.h"

#include <stdio.h>
#include <string.h>
#include "core/arena.h"
#include "core/embedded.h"
#include "core/str.h"

extern const tp_embedded_file tp_embedded_topologies[]; /* "v2-8.json", ...; made by the build */

enum { MAX_FILE_BYTES = 1 << 20 };

static const char *const builtin_names[] = {"v2-8", "v3-8", "v4-8", "v5e-8", "k80",  "p100",
                                            "v100", "t4",   "a100", "h100",  "h200", "cpu"};
enum { BUILTIN_COUNT = sizeof builtin_names / sizeof builtin_names[0] };

const char *tp_topology_builtin_name(size_t index)
{
    return index < BUILTIN_COUNT ? builtin_names[index] : NULL;
}

static const tp_embedded_file *find_builtin(const char *name)
{
    size_t length = strlen(name);
    for (const tp_embedded_file *file = tp_embedded_topologies; file->name; file++) {
        if (strncmp(file->name, name, length) == 0 && strcmp(file->name + length, ".json") == 0)
            return file;
    }
    return NULL;
}

static tpucl_status unknown_name(const char *name)
{
    char list[256] = "", hint[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < BUILTIN_COUNT && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 builtin_names[i]);
    const char *nearest = tp_str_nearest(name, builtin_names, BUILTIN_COUNT);
    if (nearest) snprintf(hint, sizeof hint, "; did you mean '%s'?", nearest);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "expected a topology (%s) or the path of a .json file, found '%.200s'%s", list,
                   name, hint);
}

static tpucl_status read_document(const char *name_or_path, tp_json_document **out_document)
{
    if (strchr(name_or_path, '/') || tp_str_ends_with(name_or_path, ".json"))
        return tp_json_read_file(name_or_path, MAX_FILE_BYTES, out_document);
    const tp_embedded_file *file = find_builtin(name_or_path);
    if (!file) return unknown_name(name_or_path);
    return tp_json_parse(file->text, file->length_bytes, name_or_path, out_document);
}

tpucl_status tp_topology_load(const char *name_or_path, tp_topology **out_topology)
{
    tp_json_document *document;
    *out_topology = NULL;
    TP_TRY(read_document(name_or_path, &document));
    tpucl_status status = tp_topology_from_json(tp_json_root(document), out_topology);
    tp_json_destroy(document);
    return status;
}

void tp_topology_destroy(tp_topology *topology)
{
    if (topology) tp_arena_destroy(topology->arena); /* holds the struct itself */
}

double tp_topology_figure(const tp_topology *topology, tp_figure_id id, double fallback)
{
    return topology->figures[id].known ? topology->figures[id].value : fallback;
}
