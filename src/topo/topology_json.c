/* SPDX-License-Identifier: Apache-2.0
 * Topology files: JSON to struct and back. Reading goes on after a problem, so that all of them are
 * reported together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/arena.h"
#include "core/json_write.h"
#include "topo/figure.h"
#include "topo/topology.h"

static const char *const math_names[] = {"exact", "fast"};
static const char *const precision_names[TP_PRECISION_POLICY_COUNT] = {"float32", "mixed_bfloat16",
                                                                       "bfloat16"};
static const char *const matmul_names[] = {"default", "high", "highest"};

const char *tp_precision_policy_name(tp_precision_policy precision)
{
    return (unsigned)precision < TP_PRECISION_POLICY_COUNT ? precision_names[precision] : NULL;
}

/* What the parts of the reader share. */
typedef struct reader {
    tp_topology *topology;
    tp_arena *arena;
    tp_problems problems;
} reader;

/* An integer member; false when it is absent or wrong. */
static bool read_int(reader *r, const tp_json *object, const char *key, int64_t min, int64_t max,
                     int32_t *inout_value)
{
    int64_t value;
    const tp_json *member = tp_json_member(object, key);
    if (!member ||
        !tp_problems_add_failed(&r->problems, tp_json_as_int64(member, min, max, &value)))
        return false;
    *inout_value = (int32_t)value;
    return true;
}

/* One of the names, as an int. */
static void read_choice(reader *r, const tp_json *object, const char *key, const char *const *names,
                        size_t count, int *out_value)
{
    size_t index;
    const tp_json *member = tp_json_member(object, key);
    if (member &&
        tp_problems_add_failed(&r->problems, tp_json_as_choice(member, names, count, &index)))
        *out_value = (int)index;
}

static tpucl_status read_text(reader *r, const tp_json *object, const char *key,
                              const char *fallback, const char **out_text)
{
    const char *text = fallback;
    if (!tp_problems_add_failed(&r->problems, tp_json_get_string(object, key, &text))) text = "";
    *out_text = tp_arena_strdup(r->arena, text);
    return *out_text ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* hosts, chips, cores_per_chip, cores: the product is stated and computed, and both must agree. */
static void read_counts(reader *r, const tp_json *root)
{
    tp_topology *t = r->topology;
    char where[TP_JSON_WHERE_BYTES];
    const tp_json *ignored;
    int32_t cores = 0;
    t->hosts = t->chips = t->cores_per_chip = t->cores = 1;
    bool known = tp_problems_add_failed(&r->problems,
                                        tp_json_require(root, "cores", TP_JSON_INTEGER, &ignored));
    known = known && read_int(r, root, "cores", 1, TP_TOPOLOGY_MAX_CORES, &cores);
    read_int(r, root, "hosts", 1, TP_TOPOLOGY_MAX_CORES, &t->hosts);
    bool split = read_int(r, root, "cores_per_chip", 1, 16, &t->cores_per_chip);
    bool counted = read_int(r, root, "chips", 1, TP_TOPOLOGY_MAX_CORES, &t->chips);
    if (!known) return;
    t->cores = cores;
    if (!counted && !split) {
        t->chips = cores;
    } else if ((int64_t)t->chips * t->cores_per_chip != cores) {
        tp_problems_add(&r->problems,
                        "expected 'cores' = 'chips' * 'cores_per_chip', found %d = %d * %d at %s",
                        cores, t->chips, t->cores_per_chip,
                        tp_json_where(tp_json_member(root, "cores"), where));
        return;
    }
    if (t->chips % t->hosts != 0)
        tp_problems_add(&r->problems,
                        "expected every host to have as many chips, found %d chips "
                        "for %d hosts at %s",
                        t->chips, t->hosts, tp_json_where(root, where));
}

static void read_numeric(reader *r, const tp_json *root)
{
    static const char *const keys[] = {"mxu_chunk", "vpu_lanes",        "math",
                                       "precision", "matmul_precision", "per_core_batch"};
    tp_topology *t = r->topology;
    const tp_json *object = tp_json_member(root, "numeric");
    int math = TP_MATH_EXACT, precision = TP_PRECISION_MIXED_BFLOAT16, matmul = TP_MATMUL_DEFAULT;
    t->numeric.mxu_chunk = t->numeric.vpu_lanes = 128;
    t->numeric.per_core_batch = 128;
    if (object && tp_problems_add_failed(&r->problems, tp_json_expect(object, TP_JSON_OBJECT))) {
        tp_json_report_unknown(object, keys, sizeof keys / sizeof keys[0], &r->problems);
        /* Contract 1 defines both as 128; other sizes are other numbers. */
        read_int(r, object, "mxu_chunk", 128, 128, &t->numeric.mxu_chunk);
        read_int(r, object, "vpu_lanes", 128, 128, &t->numeric.vpu_lanes);
        read_choice(r, object, "math", math_names, 2, &math);
        read_choice(r, object, "precision", precision_names, TP_PRECISION_POLICY_COUNT, &precision);
        read_choice(r, object, "matmul_precision", matmul_names, 3, &matmul);
        tp_problems_add_failed(&r->problems, tp_json_get_int64(object, "per_core_batch", 1, 1 << 20,
                                                               &t->numeric.per_core_batch));
    }
    t->numeric.math = (tp_math)math;
    t->numeric.precision = (tp_precision_policy)precision;
    t->numeric.matmul_precision = (tp_matmul_precision)matmul;
}

/* ---- placement ---- */

/* Marks the ids that an entry lists by number. `owner[id]` is 1 + the entry's index, 0 while free. */
static void claim_listed(reader *r, const tp_json *cores, int32_t *owner, int32_t entry)
{
    char where[TP_JSON_WHERE_BYTES];
    for (size_t i = 0; i < cores->count; i++) {
        int64_t id;
        if (!tp_problems_add_failed(
                &r->problems, tp_json_as_int64(&cores->items[i], 0, r->topology->cores - 1, &id)))
            continue;
        if (owner[id])
            tp_problems_add(&r->problems, "core %d is placed twice, again at %s", (int)id,
                            tp_json_where(&cores->items[i], where));
        else
            owner[id] = entry + 1;
    }
}

/* Gives `wanted` free ids, the lowest first, to an entry; negative: all that are left. */
static void claim_free(reader *r, const tp_json *at, int64_t wanted, int32_t *owner, int32_t entry)
{
    int64_t got = 0;
    char where[TP_JSON_WHERE_BYTES];
    for (int32_t id = 0; id < r->topology->cores && got != wanted; id++) {
        if (owner[id]) continue;
        owner[id] = entry + 1;
        got++;
    }
    if (got < wanted)
        tp_problems_add(&r->problems, "expected %lld more cores to be free, found %lld of %d at %s",
                        (long long)wanted, (long long)got, r->topology->cores,
                        tp_json_where(at, where));
}

static void claim_cores(reader *r, const tp_json *list, int32_t *owner)
{
    char where[TP_JSON_WHERE_BYTES], found[TP_JSON_FOUND_BYTES];
    for (size_t i = 0; i < list->count; i++) {
        const tp_json *cores = tp_json_member(&list->items[i], "cores");
        if (cores && cores->kind == TP_JSON_ARRAY) claim_listed(r, cores, owner, (int32_t)i);
    }
    for (size_t i = 0; i < list->count; i++) {
        const tp_json *cores = tp_json_member(&list->items[i], "cores");
        int64_t count;
        if (!cores)
            claim_free(r, &list->items[i], -1, owner, (int32_t)i);
        else if (cores->kind == TP_JSON_INTEGER) {
            if (tp_problems_add_failed(&r->problems,
                                       tp_json_as_int64(cores, 1, r->topology->cores, &count)))
                claim_free(r, cores, count, owner, (int32_t)i);
        } else if (cores->kind != TP_JSON_ARRAY)
            tp_problems_add(&r->problems,
                            "expected a number of cores or a list of core ids, found "
                            "%s at %s",
                            tp_json_found(cores, found), tp_json_where(cores, where));
    }
}

static tpucl_status read_entry(reader *r, const tp_json *object, const int32_t *owner,
                               int32_t entry, tp_placement *placement)
{
    static const char *const keys[] = {"device", "cores", "split"};
    char where[TP_JSON_WHERE_BYTES];
    placement->split = 1;
    placement->device = "";
    if (!tp_problems_add_failed(&r->problems, tp_json_expect(object, TP_JSON_OBJECT)))
        return TPUCL_OK;
    tp_json_report_unknown(object, keys, 3, &r->problems);
    TP_TRY(read_text(r, object, "device", "", &placement->device));
    read_int(r, object, "split", 1, 1024, &placement->split);
    int32_t *ids = TP_ARENA_NEW_ARRAY(r->arena, int32_t, (size_t)r->topology->cores);
    if (!ids) return TPUCL_OUT_OF_MEMORY;
    for (int32_t id = 0; id < r->topology->cores; id++) {
        if (owner[id] == entry + 1) ids[placement->core_count++] = id;
    }
    placement->cores = ids;
    if (placement->core_count == 0)
        tp_problems_add(&r->problems, "no core is left for the device at %s",
                        tp_json_where(object, where));
    else if ((size_t)placement->split > placement->core_count)
        tp_problems_add(&r->problems,
                        "expected 'split' to be at most the number of cores there, "
                        "found %d for %zu cores at %s",
                        placement->split, placement->core_count, tp_json_where(object, where));
    return TPUCL_OK;
}

static tpucl_status read_placement(reader *r, const tp_json *root)
{
    char where[TP_JSON_WHERE_BYTES];
    const tp_json *list = tp_json_member(root, "placement");
    if (!list || !tp_problems_add_failed(&r->problems, tp_json_expect(list, TP_JSON_ARRAY)) ||
        list->count == 0)
        return TPUCL_OK;
    if (list->count > (size_t)r->topology->cores) {
        tp_problems_add(&r->problems,
                        "expected at most one device for each of %d cores, found %zu "
                        "at %s",
                        r->topology->cores, list->count, tp_json_where(list, where));
        return TPUCL_OK;
    }
    int32_t *owner = TP_ARENA_NEW_ARRAY(r->arena, int32_t, (size_t)r->topology->cores);
    tp_placement *placement = TP_ARENA_NEW_ARRAY(r->arena, tp_placement, list->count);
    if (!owner || !placement) return TPUCL_OUT_OF_MEMORY;
    claim_cores(r, list, owner);
    for (size_t i = 0; i < list->count; i++)
        TP_TRY(read_entry(r, &list->items[i], owner, (int32_t)i, &placement[i]));
    int32_t unplaced = 0;
    for (int32_t id = 0; id < r->topology->cores; id++)
        unplaced += owner[id] == 0;
    if (unplaced)
        tp_problems_add(&r->problems,
                        "expected every core on a device, found %d of %d on none at "
                        "%s; add them or leave 'placement' out",
                        unplaced, r->topology->cores, tp_json_where(list, where));
    r->topology->placement = placement;
    r->topology->placement_count = list->count;
    return TPUCL_OK;
}

/* ---- the whole ---- */

static tpucl_status read_all(reader *r, const tp_json *root)
{
    static const char *const keys[] = {"$schema", "name",    "generation", "description",
                                       "source",  "hosts",   "chips",      "cores_per_chip",
                                       "cores",   "figures", "numeric",    "placement"};
    const tp_json *ignored;
    tp_topology *t = r->topology;
    t->file = tp_arena_strdup(r->arena, tp_json_name(root->document));
    if (!t->file) return TPUCL_OUT_OF_MEMORY;
    if (!tp_problems_add_failed(&r->problems, tp_json_expect(root, TP_JSON_OBJECT)))
        return TPUCL_OK;
    tp_json_report_unknown(root, keys, sizeof keys / sizeof keys[0], &r->problems);
    if (tp_problems_add_failed(&r->problems,
                               tp_json_require(root, "name", TP_JSON_STRING, &ignored)))
        TP_TRY(read_text(r, root, "name", "", &t->name));
    TP_TRY(read_text(r, root, "generation", "", &t->generation));
    TP_TRY(read_text(r, root, "description", "", &t->description));
    TP_TRY(read_text(r, root, "source", "", &t->source));
    read_counts(r, root);
    read_numeric(r, root);
    const tp_json *figures = tp_json_member(root, "figures");
    if (figures) TP_TRY(tp_figures_read(figures, r->arena, &r->problems, t->figures));
    return read_placement(r, root);
}

tpucl_status tp_topology_from_json(const tp_json *root, tp_topology **out_topology)
{
    *out_topology = NULL;
    reader r = {0};
    TP_TRY(tp_arena_create(4096, &r.arena));
    tpucl_status status = TPUCL_OUT_OF_MEMORY;
    r.topology = TP_ARENA_NEW(r.arena, tp_topology);
    if (r.topology) status = read_all(&r, root);
    char what[256];
    snprintf(what, sizeof what, "topology '%.200s'", tp_json_name(root->document));
    if (status == TPUCL_OK) status = tp_problems_result(&r.problems, TPUCL_INVALID_CONFIG, what);
    if (status != TPUCL_OK) {
        tp_arena_destroy(r.arena);
        return status;
    }
    r.topology->arena = r.arena;
    *out_topology = r.topology;
    return TPUCL_OK;
}

static void write_placement(const tp_topology *topology, tp_json_writer *writer)
{
    tp_json_begin_array(writer);
    for (size_t i = 0; i < topology->placement_count; i++) {
        const tp_placement *placement = &topology->placement[i];
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "device", placement->device);
        tp_json_key(writer, "cores");
        tp_json_begin_inline_array(writer);
        for (size_t k = 0; k < placement->core_count; k++)
            tp_json_write_int(writer, placement->cores[k]);
        tp_json_end_array(writer);
        tp_json_put_int(writer, "split", placement->split);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
}

tpucl_status tp_topology_to_json(const tp_topology *t, char **out_text)
{
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "name", t->name);
    tp_json_put_string(&writer, "generation", t->generation);
    tp_json_put_string(&writer, "description", t->description);
    tp_json_put_string(&writer, "source", t->source);
    tp_json_put_int(&writer, "hosts", t->hosts);
    tp_json_put_int(&writer, "chips", t->chips);
    tp_json_put_int(&writer, "cores_per_chip", t->cores_per_chip);
    tp_json_put_int(&writer, "cores", t->cores);
    tp_json_key(&writer, "figures");
    tp_figures_write(t->figures, &writer);
    tp_json_key(&writer, "numeric");
    tp_json_begin_object(&writer);
    tp_json_put_int(&writer, "mxu_chunk", t->numeric.mxu_chunk);
    tp_json_put_int(&writer, "vpu_lanes", t->numeric.vpu_lanes);
    tp_json_put_string(&writer, "math", math_names[t->numeric.math]);
    tp_json_put_string(&writer, "precision", precision_names[t->numeric.precision]);
    tp_json_put_string(&writer, "matmul_precision", matmul_names[t->numeric.matmul_precision]);
    tp_json_put_int(&writer, "per_core_batch", t->numeric.per_core_batch);
    tp_json_end_object(&writer);
    tp_json_key(&writer, "placement");
    write_placement(t, &writer);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}
