/* SPDX-License-Identifier: Apache-2.0
 * Building: memory, then disk, then the compiler. A program that one thread is building stands in
 * the list already, so that others wait for it instead of building it too. */
#include "device/compiler.h"

#include <stdio.h>
#include <string.h>
#include <tpucl/version.h>
#include "core/alloc.h"
#include "core/clock.h"
#include "core/log.h"

enum { LOG_LINES = 10, LOG_BYTES = 1200 };

tpucl_status tp_build_state_init(tp_device *device)
{
    tp_build_state *state = TP_NEW(tp_build_state);
    if (!state) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_mutex_init(&state->mutex);
    if (status != TPUCL_OK) goto no_mutex;
    TP_TRY_GOTO(status, tp_mutex_init(&state->compile_mutex), no_compile_mutex);
    TP_TRY_GOTO(status, tp_mutex_init(&state->compilers_mutex), no_compilers_mutex);
    TP_TRY_GOTO(status, tp_cond_init(&state->changed), no_cond);
    device->build = state;
    return TPUCL_OK;
no_cond:
    tp_mutex_deinit(&state->compilers_mutex);
no_compilers_mutex:
    tp_mutex_deinit(&state->compile_mutex);
no_compile_mutex:
    tp_mutex_deinit(&state->mutex);
no_mutex:
    tp_free(state);
    return status;
}

void tp_build_state_deinit(tp_device *device)
{
    tp_build_state *state = device->build;
    if (!state) return;
    tp_device_forget_programs(device);
    tp_compilers_destroy(state->compilers);
    tp_crashed_keys_deinit(&state->crashed);
    tp_cond_deinit(&state->changed);
    tp_mutex_deinit(&state->compilers_mutex);
    tp_mutex_deinit(&state->compile_mutex);
    tp_mutex_deinit(&state->mutex);
    tp_free(state);
    device->build = NULL;
}

void tp_device_program_drop(tp_device_program *program)
{
    if (atomic_fetch_sub(&program->references, 1) != 1) return;
    if (program->program) (void)program->device->cl->ReleaseProgram(program->program);
    tp_free(program);
}

void tp_device_program_release(tp_device_program *program)
{
    if (!program) return;
    tp_device *device = program->device;
    tp_device_program_drop(program);
    tp_device_release(device);
}

void tp_device_forget_programs(tp_device *device)
{
    tp_build_state *state = device->build;
    tp_mutex_lock(&state->mutex);
    tp_device_program **link = &state->programs;
    while (*link) {
        tp_device_program *program = *link;
        if (program->state == TP_PROGRAM_BUILDING) { /* its builder still needs it there */
            link = &program->next;
            continue;
        }
        *link = program->next;
        tp_device_program_drop(program);
    }
    tp_mutex_unlock(&state->mutex);
}

/* ---- the compiler ---- */

/* The first lines of the build log, or a sentence that there is none. */
static void read_log(const tp_device_program *program, char *out_text, size_t room)
{
    const tp_device *device = program->device;
    size_t bytes = 0;
    out_text[0] = '\0';
    char *log = NULL;
    if (device->cl->GetProgramBuildInfo(program->program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                        &bytes) == CL_SUCCESS &&
        bytes && bytes < ((size_t)64 << 20))
        log = tp_alloc_zero(bytes + 1);
    if (log && device->cl->GetProgramBuildInfo(program->program, device->id, CL_PROGRAM_BUILD_LOG,
                                               bytes, log, NULL) == CL_SUCCESS) {
        const char *start = log + strspn(log, " \t\r\n");
        const char *end = start;
        for (int line = 0; line < LOG_LINES && *end; line++) {
            end += strcspn(end, "\n");
            if (*end && line + 1 < LOG_LINES) end++;
        }
        snprintf(out_text, room, "%.*s", (int)(end - start), start);
    }
    tp_free(log);
    if (!out_text[0]) snprintf(out_text, room, "(the driver gave no build log)");
}

static tpucl_status compile(tp_device_program *program, const char *source, const char *options)
{
    const tp_device *device = program->device;
    const tp_cl_api *cl = device->cl;
    cl_int code = CL_SUCCESS;
    program->program = cl->CreateProgramWithSource(device->context, 1, &source, NULL, &code);
    TP_CL_TRY_OUT(program->program, code, "clCreateProgramWithSource",
                  "program '%s', %zu characters", program->label, strlen(source));
    code = cl->BuildProgram(program->program, 1, &device->id, options, NULL, NULL);
    if (code == CL_SUCCESS) return TPUCL_OK;
    char log[LOG_BYTES];
    read_log(program, log, sizeof log);
    return TP_CL_FAIL(code, "clBuildProgram",
                      "program '%s' with options '%.200s' on device %s '%s':\n%s", program->label,
                      options, device->label, device->caps.name, log);
}

/* A compiler that has ended another process would end this one. */
static tpucl_status check_crashed(tp_device_program *program)
{
    tp_build_state *state = program->device->build;
    bool has_crashed = false;
    tp_mutex_lock(&state->mutex);
    for (size_t i = 0; i < state->crashed.count; i++)
        has_crashed =
            has_crashed || memcmp(state->crashed.items[i].key, program->key, TP_SHA256_BYTES) == 0;
    tp_mutex_unlock(&state->mutex);
    if (!has_crashed) return TPUCL_OK;
    return TP_FAIL(TPUCL_DEVICE_ERROR,
                   "the compiler of device %s '%s' crashes on program '%s'; another version of the "
                   "driver may not",
                   program->device->label, program->device->caps.name, program->label);
}

static tpucl_status compile_from_source(tp_device_program *program, const char *source,
                                        const char *options)
{
    tp_device *device = program->device;
    tp_build_state *state = device->build;
    TP_TRY(check_crashed(program));
    const bool is_serial = device->quirks.effects & TP_QUIRK_SERIAL_BUILDS;
    const uint64_t start_ns = tp_clock_now_ns();
    if (is_serial) tp_mutex_lock(&state->compile_mutex);
    const tpucl_status status = compile(program, source, options);
    if (is_serial) tp_mutex_unlock(&state->compile_mutex);
    TP_TRY(status);
    if (tp_device_keeps_binaries(device)) tp_device_program_save(program);
    const double seconds = (double)(tp_clock_now_ns() - start_ns) * 1e-9;
    TP_LOG_DEBUG("device", "built '%s' from source in %.3f s on %s", program->label, seconds,
                 device->label);
    tp_mutex_lock(&state->mutex);
    state->stats.from_source++;
    state->stats.source_seconds += seconds;
    tp_mutex_unlock(&state->mutex);
    return TPUCL_OK;
}

/* False on any problem: the program is built from source then. */
static bool create_from_binary(tp_device_program *program, const unsigned char *binary,
                               size_t bytes, const char *options)
{
    const tp_device *device = program->device;
    const tp_cl_api *cl = device->cl;
    cl_int code = CL_SUCCESS, binary_status = CL_SUCCESS;
    program->program = cl->CreateProgramWithBinary(device->context, 1, &device->id, &bytes, &binary,
                                                   &binary_status, &code);
    if (program->program && code == CL_SUCCESS && binary_status == CL_SUCCESS &&
        cl->BuildProgram(program->program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return true;
    if (program->program) (void)cl->ReleaseProgram(program->program);
    program->program = NULL;
    return false;
}

static bool load_from_disk(tp_device_program *program, const char *options)
{
    tp_device *device = program->device;
    if (!tp_device_keeps_binaries(device)) return false;
    tp_program_cache *cache = device->options.cache;
    const uint64_t start_ns = tp_clock_now_ns();
    void *binary = NULL;
    size_t bytes = 0;
    tpucl_error record;
    tp_error_capture(&record); /* a miss is no error */
    const tpucl_status status = tp_program_cache_load(cache, program->key, &binary, &bytes);
    tp_error_restore(&record);
    if (status != TPUCL_OK) return false;
    const bool is_good = create_from_binary(program, binary, bytes, options);
    tp_free(binary);
    if (!is_good) {
        TP_LOG_WARNING("device",
                       "the driver refused the stored binary of '%s': building from source",
                       program->label);
        tp_program_cache_reject(cache, program->key);
        return false;
    }
    tp_build_state *state = device->build;
    tp_mutex_lock(&state->mutex);
    state->stats.from_disk++;
    state->stats.disk_seconds += (double)(tp_clock_now_ns() - start_ns) * 1e-9;
    tp_mutex_unlock(&state->mutex);
    return true;
}

/* ---- the memory cache ---- */

void tp_device_program_key(const tp_device *device, const char *source, const char *options,
                           uint8_t out_key[TP_SHA256_BYTES])
{
    char versions[64];
    snprintf(versions, sizeof versions, "%d %d.%d.%d", TP_PROGRAM_CACHE_FORMAT, TPUCL_VERSION_MAJOR,
             TPUCL_VERSION_MINOR, TPUCL_VERSION_PATCH);
    tp_sha256 hash;
    tp_sha256_init(&hash);
    tp_sha256_update_text(&hash, versions);
    tp_sha256_update_text(&hash, device->identity);
    tp_sha256_update_text(&hash, options);
    tp_sha256_update_text(&hash, source);
    tp_sha256_finish(&hash, out_key);
}

/* With the mutex held. */
static tp_device_program *find(tp_build_state *state, const uint8_t key[TP_SHA256_BYTES])
{
    for (tp_device_program *program = state->programs; program; program = program->next)
        if (memcmp(program->key, key, TP_SHA256_BYTES) == 0) return program;
    return NULL;
}

/* With the mutex held: a finished program with a reference for the caller, or NULL when nobody has
 * it or is building it. */
static tp_device_program *wait_for_ready(tp_build_state *state, const uint8_t key[TP_SHA256_BYTES])
{
    for (;;) {
        tp_device_program *program = find(state, key);
        if (!program) return NULL;
        if (program->state == TP_PROGRAM_READY) {
            atomic_fetch_add(&program->references, 1);
            return program;
        }
        tp_cond_wait(&state->changed, &state->mutex); /* failed ones leave the list */
    }
}

/* With the mutex held: takes a program out of the list and drops the list's reference. */
static void take_out(tp_build_state *state, tp_device_program *program)
{
    for (tp_device_program **link = &state->programs; *link; link = &(*link)->next) {
        if (*link != program) continue;
        *link = program->next;
        tp_device_program_drop(program);
        return;
    }
}

/* Two references: the list's and the caller's. */
static tp_device_program *new_program(tp_device *device, const char *label,
                                      const uint8_t key[TP_SHA256_BYTES])
{
    tp_device_program *program = TP_NEW(tp_device_program);
    if (!program) return NULL;
    atomic_init(&program->references, 2);
    program->state = TP_PROGRAM_BUILDING;
    program->device = device;
    memcpy(program->key, key, TP_SHA256_BYTES);
    snprintf(program->label, sizeof program->label, "%s", label ? label : "?");
    return program;
}

bool tp_device_program_store(tp_device *device, const char *label,
                             const uint8_t key[TP_SHA256_BYTES], const char *source,
                             const char *options)
{
    tp_program_cache_counts before, after;
    tp_device_program *program = new_program(device, label, key);
    if (!program) return false;
    tp_program_cache_get_counts(device->options.cache, &before);
    const tpucl_status status = compile(program, source, options);
    if (status == TPUCL_OK) tp_device_program_save(program);
    tp_program_cache_get_counts(device->options.cache, &after);
    atomic_store(&program->references, 1); /* nobody's list has it */
    tp_device_program_drop(program);
    return after.stores > before.stores;
}

static tpucl_status build(tp_device *device, const tp_device_program_source *request,
                          const char *options, tp_device_program **out_program,
                          bool *out_was_cached)
{
    tp_build_state *state = device->build;
    uint8_t key[TP_SHA256_BYTES];
    tp_device_program_key(device, request->source, options, key);

    tp_mutex_lock(&state->mutex);
    tp_device_program *program = wait_for_ready(state, key);
    if (program) {
        state->stats.from_memory++;
        tp_mutex_unlock(&state->mutex);
        *out_program = program;
        *out_was_cached = true;
        return TPUCL_OK;
    }
    program = new_program(device, request->label, key);
    if (program) {
        program->next = state->programs;
        state->programs = program;
    }
    tp_mutex_unlock(&state->mutex);
    if (!program) return TPUCL_OUT_OF_MEMORY;

    *out_was_cached = load_from_disk(program, options);
    const tpucl_status status =
        *out_was_cached ? TPUCL_OK : compile_from_source(program, request->source, options);

    tp_mutex_lock(&state->mutex);
    program->state = status == TPUCL_OK ? TP_PROGRAM_READY : TP_PROGRAM_FAILED;
    if (status != TPUCL_OK) take_out(state, program);
    tp_cond_broadcast(&state->changed);
    tp_mutex_unlock(&state->mutex);
    if (status != TPUCL_OK) {
        tp_device_program_drop(program);
        return status;
    }
    *out_program = program;
    return TPUCL_OK;
}

char *tp_device_program_options(const tp_device *device, const char *extra)
{
    if (!extra) extra = "";
    const size_t room = strlen(device->build_options) + strlen(extra) + 2;
    char *options = tp_alloc(room);
    if (options)
        snprintf(options, room, "%s%s%s", device->build_options, extra[0] ? " " : "", extra);
    return options;
}

tpucl_status tp_device_program_build_timed(tp_device *device,
                                           const tp_device_program_source *request,
                                           tp_device_program **out_program, double *out_seconds,
                                           bool *out_was_cached)
{
    *out_program = NULL;
    const uint64_t start_ns = tp_clock_now_ns();
    char *options = tp_device_program_options(device, request->options);
    if (!options) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = build(device, request, options, out_program, out_was_cached);
    tp_free(options);
    if (status == TPUCL_OK) tp_device_retain(device);
    *out_seconds = (double)(tp_clock_now_ns() - start_ns) * 1e-9;
    return status;
}

tpucl_status tp_device_program_build(tp_device *device, const tp_device_program_source *request,
                                     tp_device_program **out_program)
{
    double seconds;
    bool was_cached;
    return tp_device_program_build_timed(device, request, out_program, &seconds, &was_cached);
}

void tp_device_get_build_stats(const tp_device *device, tp_build_stats *out_stats)
{
    tp_build_state *state = device->build;
    tp_mutex_lock(&state->mutex);
    *out_stats = state->stats;
    tp_mutex_unlock(&state->mutex);
}
