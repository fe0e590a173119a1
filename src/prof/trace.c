/* SPDX-License-Identifier: Apache-2.0
 * One ring per thread, so that adding a zone takes no lock; a thread finds its ring through a thread-local
 * cache, and through the list of rings when it has used another trace meanwhile. */
#include "prof/trace.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/file.h"
#include "core/json_write.h"
#include "core/thread.h"

enum { DEFAULT_ZONES = 65536, NAME_BYTES = 48 };

typedef struct zone {
    uint64_t begin_ns, end_ns;
    int64_t step;
    int lane;
    char name[NAME_BYTES];
} zone;

typedef struct ring {
    struct ring *next;
    uint64_t thread_id;
    uint64_t added; /* in all; the ring holds the last `capacity` */
    size_t capacity;
    zone zones[];
} ring;

TP_ARRAY_DEFINE(lane_names, char *)
TP_ARRAY_DEFINE(zone_list, const zone *)

struct tp_trace {
    uint64_t id; /* never used twice, unlike an address */
    size_t zones_per_thread;
    tp_mutex mutex; /* of the two below */
    ring *rings;
    lane_names lanes;
    _Atomic uint64_t dropped;
};

static _Atomic uint64_t trace_ids = 1, thread_ids = 1;
static _Thread_local uint64_t this_thread_id; /* 0 until this thread adds its first zone */
static _Thread_local uint64_t cached_trace_id;
static _Thread_local ring *cached_ring;

tpucl_status tp_trace_create(size_t zones_per_thread, tp_trace **out_trace)
{
    *out_trace = NULL;
    tp_trace *trace = TP_NEW(tp_trace);
    if (!trace) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_mutex_init(&trace->mutex);
    if (status != TPUCL_OK) {
        tp_free(trace);
        return status;
    }
    trace->id = atomic_fetch_add(&trace_ids, 1);
    trace->zones_per_thread = zones_per_thread ? zones_per_thread : DEFAULT_ZONES;
    *out_trace = trace;
    return TPUCL_OK;
}

void tp_trace_destroy(tp_trace *trace)
{
    if (!trace) return;
    for (ring *r = trace->rings; r;) {
        ring *next = r->next;
        tp_free(r);
        r = next;
    }
    for (size_t i = 0; i < trace->lanes.count; i++)
        tp_free(trace->lanes.items[i]);
    lane_names_deinit(&trace->lanes);
    tp_mutex_deinit(&trace->mutex);
    tp_free(trace);
}

int tp_trace_lane(tp_trace *trace, const char *name)
{
    if (!trace) return -1;
    tp_mutex_lock(&trace->mutex);
    size_t i = 0;
    while (i < trace->lanes.count && strcmp(trace->lanes.items[i], name) != 0)
        i++;
    if (i == trace->lanes.count) {
        char *copy = tp_alloc_strdup(name);
        if (!copy || lane_names_push(&trace->lanes, copy) != TPUCL_OK) {
            tp_free(copy);
            i = SIZE_MAX;
        }
    }
    tp_mutex_unlock(&trace->mutex);
    return i == SIZE_MAX ? -1 : (int)i;
}

/* The calling thread's ring, made when it has none; NULL when memory fails. */
static ring *find_ring(tp_trace *trace)
{
    if (cached_trace_id == trace->id) return cached_ring;
    if (!this_thread_id) this_thread_id = atomic_fetch_add(&thread_ids, 1);
    tp_mutex_lock(&trace->mutex);
    ring *r = trace->rings;
    while (r && r->thread_id != this_thread_id)
        r = r->next;
    size_t bytes;
    if (!r && tp_size_mul(trace->zones_per_thread, sizeof(zone), &bytes) &&
        tp_size_add(bytes, sizeof(ring), &bytes) && (r = tp_alloc(bytes)) != NULL) {
        *r = (ring){
            .next = trace->rings, .thread_id = this_thread_id, .capacity = trace->zones_per_thread};
        trace->rings = r;
    }
    tp_mutex_unlock(&trace->mutex);
    if (r) {
        cached_trace_id = trace->id;
        cached_ring = r;
    }
    return r;
}

void tp_trace_zone(tp_trace *trace, int lane, const char *name, uint64_t begin_ns, uint64_t end_ns,
                   int64_t step)
{
    if (!trace) return;
    ring *r = lane < 0 ? NULL : find_ring(trace);
    if (!r) {
        atomic_fetch_add(&trace->dropped, 1);
        return;
    }
    zone *z = &r->zones[r->added++ % r->capacity];
    *z = (zone){begin_ns, end_ns < begin_ns ? begin_ns : end_ns, step, lane, ""};
    snprintf(z->name, sizeof z->name, "%s", name);
}

static uint64_t kept(const ring *r)
{
    return r->added < r->capacity ? r->added : r->capacity;
}

uint64_t tp_trace_lost(const tp_trace *trace)
{
    if (!trace) return 0;
    uint64_t lost = atomic_load(&trace->dropped);
    for (const ring *r = trace->rings; r; r = r->next)
        lost += r->added - kept(r);
    return lost;
}

static int compare_zones(const void *a, const void *b)
{
    const zone *x = *(const zone *const *)a, *y = *(const zone *const *)b;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

static void write_lane(tp_json_writer *writer, int lane, const char *name)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", "thread_name");
    tp_json_put_string(writer, "ph", "M");
    tp_json_put_int(writer, "pid", 1);
    tp_json_put_int(writer, "tid", lane);
    tp_json_key(writer, "args");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", name);
    tp_json_end_object(writer);
    tp_json_end_object(writer);
}

static void write_zone(tp_json_writer *writer, const zone *z, uint64_t origin_ns)
{
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "name", z->name);
    tp_json_put_string(writer, "ph", "X");
    tp_json_put_double(writer, "ts", (double)(z->begin_ns - origin_ns) / 1000);
    tp_json_put_double(writer, "dur", (double)(z->end_ns - z->begin_ns) / 1000);
    tp_json_put_int(writer, "pid", 1);
    tp_json_put_int(writer, "tid", z->lane);
    if (z->step >= 0) {
        tp_json_key(writer, "args");
        tp_json_begin_object(writer);
        tp_json_put_int(writer, "step", z->step);
        tp_json_end_object(writer);
    }
    tp_json_end_object(writer);
}

tpucl_status tp_trace_to_json(const tp_trace *trace, char **out_text)
{
    zone_list zones = {0};
    tpucl_status status = TPUCL_OK;
    *out_text = NULL;
    for (const ring *r = trace ? trace->rings : NULL; r; r = r->next) {
        for (uint64_t i = 0; i < kept(r); i++)
            TP_TRY_GOTO(status, zone_list_push(&zones, &r->zones[i]), done);
    }
    if (zones.count) qsort(zones.items, zones.count, sizeof zones.items[0], compare_zones);
    tp_json_writer writer = {.compact = true};
    tp_json_begin_object(&writer);
    tp_json_key(&writer, "traceEvents");
    tp_json_begin_array(&writer);
    for (size_t i = 0; trace && i < trace->lanes.count; i++)
        write_lane(&writer, (int)i, trace->lanes.items[i]);
    for (size_t i = 0; i < zones.count; i++)
        write_zone(&writer, zones.items[i], zones.items[0]->begin_ns);
    tp_json_end_array(&writer);
    tp_json_put_string(&writer, "displayTimeUnit", "ms");
    tp_json_end_object(&writer);
    status = tp_json_writer_finish(&writer, out_text);
done:
    zone_list_deinit(&zones);
    return status;
}

tpucl_status tp_trace_save(const tp_trace *trace, const char *path)
{
    char *text;
    TP_TRY(tp_trace_to_json(trace, &text));
    tpucl_status status = tp_file_write_atomic(path, text, strlen(text));
    tp_free(text);
    return status;
}
