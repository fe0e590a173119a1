/* SPDX-License-Identifier: Apache-2.0
 * Which programs are worth compiling in processes of their own: those that nobody has built yet, when there are
 * several of them. They are in the disk cache afterwards. */
#include <string.h>
#include "core/alloc.h"
#include "device/compiler.h"

typedef struct apart {
    tp_device *device;
    const tp_device_program_source *sources;
    uint32_t source_count;
    tp_compile_job *jobs; /* [count] */
    uint32_t *source_of;  /* [count] */
    uint32_t count, reported;
    tp_build_callback callback;
    void *user;
    bool *is_reported; /* [source_count], NULL: nobody asks */
} apart;

static bool is_in_memory(tp_build_state *state, const uint8_t key[TP_SHA256_BYTES])
{
    bool is_there = false;
    tp_mutex_lock(&state->mutex);
    for (const tp_device_program *program = state->programs; program && !is_there;
         program = program->next)
        is_there = memcmp(program->key, key, TP_SHA256_BYTES) == 0;
    tp_mutex_unlock(&state->mutex);
    return is_there;
}

static bool is_listed(const apart *a, const uint8_t key[TP_SHA256_BYTES])
{
    for (uint32_t i = 0; i < a->count; i++)
        if (memcmp(a->jobs[i].request.key, key, TP_SHA256_BYTES) == 0) return true;
    return false;
}

/* False when there is no memory. */
static bool add_missing(apart *a, uint32_t index)
{
    const tp_device_program_source *source = &a->sources[index];
    tp_compile_job job = {.label = source->label ? source->label : "?", .source = source->source};
    char *options = tp_device_program_options(a->device, source->options);
    if (!options) return false;
    tp_device_program_key(a->device, source->source, options, job.request.key);
    const size_t bytes = strlen(source->source);
    if (bytes > TP_COMPILER_MAX_BYTES || is_in_memory(a->device->build, job.request.key) ||
        is_listed(a, job.request.key) ||
        tp_program_cache_has(a->device->options.cache, job.request.key)) {
        tp_free(options);
        return true;
    }
    job.options = options;
    job.request.magic = TP_COMPILER_MAGIC;
    job.request.label_bytes = (uint32_t)strlen(job.label);
    job.request.options_bytes = (uint32_t)strlen(options);
    job.request.source_bytes = (uint32_t)bytes;
    a->source_of[a->count] = index;
    a->jobs[a->count++] = job;
    return true;
}

static void report(const tp_compile_job *job, double seconds, void *user)
{
    apart *a = user;
    const uint32_t index = a->source_of[job - a->jobs];
    tp_build_state *state = a->device->build;
    tp_mutex_lock(&state->mutex);
    if (job->has_crashed) {
        tp_crashed_key crashed;
        memcpy(crashed.key, job->request.key, sizeof crashed.key);
        const tpucl_status ignored = tp_crashed_keys_push(&state->crashed, crashed);
        (void)ignored; /* then it is tried once more */
    }
    state->stats.apart++;
    state->stats.apart_seconds += seconds;
    tp_mutex_unlock(&state->mutex);
    if (a->is_reported) a->is_reported[index] = true;
    const tp_build_progress progress = {
        .done = ++a->reported, .total = a->source_count, .label = job->label, .seconds = seconds};
    if (a->callback) a->callback(&progress, a->user);
}

/* With the compilers' mutex held. */
static tp_compilers *find_compilers(tp_device *device)
{
    tp_build_state *state = device->build;
    if (!state->has_looked_for_compilers) state->compilers = tp_compilers_create(device);
    state->has_looked_for_compilers = true;
    return state->compilers;
}

uint32_t tp_device_compile_apart(tp_device *device, const tp_device_program_source *sources,
                                 uint32_t count, tp_build_callback callback, void *user,
                                 bool *out_is_reported)
{
    apart a = {.device = device,
               .sources = sources,
               .source_count = count,
               .callback = callback,
               .user = user,
               .is_reported = out_is_reported};
    if (count < 2 || tp_thread_processor_count() < 2) return 0;
    tpucl_error record;
    tp_error_capture(&record);
    tp_mutex_lock(&device->build->compilers_mutex);
    tp_compilers *compilers = find_compilers(device);
    if (compilers) {
        a.jobs = TP_NEW_ARRAY(tp_compile_job, count);
        a.source_of = TP_NEW_ARRAY(uint32_t, count);
        bool has_memory = a.jobs && a.source_of;
        for (uint32_t i = 0; has_memory && i < count; i++)
            has_memory = add_missing(&a, i);
        if (has_memory && a.count > 1) tp_compilers_run(compilers, a.jobs, a.count, report, &a);
        for (uint32_t i = 0; i < a.count; i++)
            tp_free((char *)a.jobs[i].options);
        tp_free(a.jobs);
        tp_free(a.source_of);
    }
    tp_mutex_unlock(&device->build->compilers_mutex);
    tp_error_restore(&record);
    return a.reported;
}

void tp_device_programs_prepare(tp_device *device, const tp_device_program_source *sources,
                                uint32_t count, tp_build_callback callback, void *user)
{
    (void)tp_device_compile_apart(device, sources, count, callback, user, NULL);
}
