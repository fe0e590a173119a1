/* SPDX-License-Identifier: Apache-2.0
 * The misbehaving OpenCL's mind: reads the specification, counts, decides who fails, spoils
 * results. Shares no code with src/ beyond the list of entry points, so that it works as a library
 * of its own too. */
#include "harness/fake_cl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/fake_cl_state.h"

enum { MAX_KERNELS = 1024, MAX_ARGS = 64 };

tp_cl_api fake_real;
fake_specification fake_wanted = {.fail_entry = -1, .corrupt_every = 1};
static int extra_platform_object;
cl_platform_id fake_extra_platform = (cl_platform_id)(void *)&extra_platform_object;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int calls[FAKE_ENTRY_COUNT];
static atomic_int living_objects, strikes, matching_launches;

static const char *const entry_names[] = {
#define ENTRY_NAME(name) "cl" #name,
    TP_CL_ENTRY_LIST(ENTRY_NAME)
#undef ENTRY_NAME
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "fake OpenCL: %s '%s'\n", what, detail);
    abort();
}

static int find_entry(const char *name)
{
    for (int i = 0; i < FAKE_ENTRY_COUNT; i++)
        if (strcmp(entry_names[i], name) == 0) return i;
    die("no such call", name);
    return -1;
}

static void read_fail(const char *value)
{
    char name[64];
    int nth, code;
    if (sscanf(value, "%63[^:]:%d:%d", name, &nth, &code) != 3)
        die("expected CALL:N:CODE, found", value);
    fake_wanted.fail_entry = find_entry(name);
    fake_wanted.fail_nth = nth;
    fake_wanted.fail_code = code;
}

static void read_platforms(const char *value)
{
    static const char *const names[] = {"real", "none", "zero", "empty", "broken", "nameless"};
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(names[i], value) != 0) continue;
        fake_wanted.platforms = (fake_platforms)i;
        return;
    }
    die("no such kind of platforms", value);
}

static void read_item(const char *key, const char *value)
{
    fake_specification *w = &fake_wanted;
    if (!strcmp(key, "fail"))
        read_fail(value);
    else if (!strcmp(key, "platforms"))
        read_platforms(value);
    else if (!strcmp(key, "devices"))
        w->devices_broken = !strcmp(value, "broken");
    else if (!strcmp(key, "max_alloc"))
        w->max_alloc = strtoull(value, NULL, 10);
    else if (!strcmp(key, "max_group"))
        w->max_group = strtoul(value, NULL, 10);
    else if (!strcmp(key, "align_bits"))
        w->align_bits = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(key, "driver"))
        snprintf(w->driver, sizeof w->driver, "%s", value);
    else if (!strcmp(key, "version"))
        snprintf(w->version, sizeof w->version, "%s", value);
    else if (!strcmp(key, "corrupt"))
        snprintf(w->corrupt, sizeof w->corrupt, "%s", value);
    else if (!strcmp(key, "corrupt_every"))
        w->corrupt_every = atoi(value);
    else if (!strcmp(key, "corrupt_reads"))
        w->corrupt_reads = atoi(value) != 0;
    else if (!strcmp(key, "refuse_binaries"))
        w->refuse_binaries = atoi(value) != 0;
    else
        die("no such item", key);
}

static void read_specification(const char *specification)
{
    fake_wanted = (fake_specification){.fail_entry = -1, .corrupt_every = 1};
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", specification);
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        if (!*item) continue;
        char *equals = strchr(item, '=');
        if (!equals) die("expected key=value, found", item);
        *equals = '\0';
        read_item(item, equals + 1);
    }
    if (fake_wanted.corrupt_every < 1) fake_wanted.corrupt_every = 1;
}

static void load_real(void)
{
#ifdef FAKE_CL_LIBRARY
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#else /* a preloaded OpenCL (Oclgrind) goes first, as in src/device/cl_api.c */
    const bool is_preloaded = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;
    void *library = dlopen(is_preloaded ? NULL : "libOpenCL.so.1", RTLD_NOW);
#endif
    if (!library) die("cannot load", "libOpenCL.so.1");
#define LOAD_ENTRY(name)                                                                           \
    do {                                                                                           \
        void *symbol = dlsym(library, "cl" #name);                                                 \
        if (!symbol) die("libOpenCL.so.1 lacks", "cl" #name);                                      \
        memcpy(&fake_real.name, &symbol, sizeof symbol);                                           \
    } while (0);
    TP_CL_ENTRY_LIST(LOAD_ENTRY)
#undef LOAD_ENTRY
#ifdef FAKE_CL_LIBRARY
    const char *specification = getenv("FAKE_CL");
    read_specification(specification ? specification : "");
#endif
}

bool fake_enter(fake_entry entry, cl_int *out_code)
{
    pthread_once(&load_once, load_real);
    const int number = atomic_fetch_add(&calls[entry], 1) + 1;
    if (fake_wanted.fail_entry != (int)entry ||
        (fake_wanted.fail_nth && fake_wanted.fail_nth != number))
        return false;
    atomic_fetch_add(&strikes, 1);
    *out_code = fake_wanted.fail_code;
    return true;
}

void fake_count_object(int change)
{
    atomic_fetch_add(&living_objects, change);
}

/* ---- corruption ---- */

typedef struct known_kernel {
    cl_kernel kernel;
    cl_mem args[MAX_ARGS];
} known_kernel;
static known_kernel kernels[MAX_KERNELS];

static known_kernel *find_kernel(cl_kernel kernel, bool may_add)
{
    known_kernel *unused = NULL;
    for (int i = 0; i < MAX_KERNELS; i++) {
        if (kernels[i].kernel == kernel) return &kernels[i];
        if (!kernels[i].kernel && !unused) unused = &kernels[i];
    }
    if (!may_add) return NULL;
    if (!unused) die("more kernels than", "1024");
    *unused = (known_kernel){.kernel = kernel};
    return unused;
}

static bool is_corrupting(void)
{
    return fake_wanted.corrupt[0] != '\0';
}

/* A pointer-sized argument may be a buffer or a 64-bit number, and asking the driver about a number
 * would crash it: what is in this list of living buffers is one. */
enum { MAX_BUFFERS = 4096 };
static struct {
    cl_mem memory;
    size_t bytes;
} buffers[MAX_BUFFERS];

void fake_note_buffer(cl_mem memory, size_t bytes)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MAX_BUFFERS; i++) {
        if (buffers[i].memory) continue;
        buffers[i].memory = memory;
        buffers[i].bytes = bytes;
        break;
    }
    pthread_mutex_unlock(&mutex);
}

void fake_forget_buffer(cl_mem memory)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (buffers[i].memory == memory) buffers[i].memory = NULL;
    pthread_mutex_unlock(&mutex);
}

static size_t buffer_bytes(cl_mem memory)
{
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (memory && buffers[i].memory == memory) return buffers[i].bytes;
    return 0;
}

void fake_note_arg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    if (!is_corrupting() || index >= MAX_ARGS) return;
    cl_mem memory = NULL;
    if (value && bytes == sizeof memory) memcpy(&memory, value, sizeof memory);
    pthread_mutex_lock(&mutex);
    find_kernel(kernel, true)->args[index] = buffer_bytes(memory) ? memory : NULL;
    pthread_mutex_unlock(&mutex);
}

void fake_forget_kernel(cl_kernel kernel)
{
    pthread_mutex_lock(&mutex);
    known_kernel *known = find_kernel(kernel, false);
    if (known) known->kernel = NULL;
    pthread_mutex_unlock(&mutex);
}

static bool is_struck(cl_kernel kernel)
{
    char name[256] = "";
    if (!is_corrupting()) return false;
    fake_real.GetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL);
    if (strcmp(fake_wanted.corrupt, "*") != 0 && !strstr(name, fake_wanted.corrupt)) return false;
    return (atomic_fetch_add(&matching_launches, 1) + 1) % fake_wanted.corrupt_every == 0;
}

typedef struct snapshot {
    cl_mem memory;
    size_t bytes;
    unsigned char *data;
} snapshot;

static int take_snapshots(cl_command_queue queue, const known_kernel *known, snapshot *out)
{
    int count = 0;
    for (int i = 0; i < MAX_ARGS; i++) {
        cl_mem memory = known->args[i];
        bool is_new = memory != NULL;
        for (int j = 0; j < count; j++)
            is_new = is_new && out[j].memory != memory;
        if (!is_new) continue;
        const size_t bytes = buffer_bytes(memory);
        unsigned char *data = malloc(bytes ? bytes : 1);
        if (!data) die("out of memory for a copy of", "a buffer");
        fake_real.EnqueueReadBuffer(queue, memory, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
        out[count++] = (snapshot){memory, bytes, data};
    }
    return count;
}

/* Flips the lowest bit of the first 32-bit word that changed. */
static bool spoil(cl_command_queue queue, const snapshot *before)
{
    unsigned char *after = malloc(before->bytes ? before->bytes : 1);
    if (!after) die("out of memory for a copy of", "a buffer");
    fake_real.EnqueueReadBuffer(queue, before->memory, CL_TRUE, 0, before->bytes, after, 0, NULL,
                                NULL);
    size_t at = 0;
    while (at < before->bytes && after[at] == before->data[at])
        at++;
    const bool has_changed = at < before->bytes;
    if (has_changed) {
        at = at / 4 * 4;
        after[at] ^= 1;
        fake_real.EnqueueWriteBuffer(queue, before->memory, CL_TRUE, at, 1, after + at, 0, NULL,
                                     NULL);
        atomic_fetch_add(&strikes, 1);
    }
    free(after);
    return has_changed;
}

cl_int fake_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                   const size_t *global, const size_t *local, cl_uint wait_count,
                   const cl_event *wait, cl_event *out_event)
{
    if (!is_struck(kernel))
        return fake_real.EnqueueNDRangeKernel(queue, kernel, dims, offset, global, local,
                                              wait_count, wait, out_event);
    snapshot snapshots[MAX_ARGS];
    pthread_mutex_lock(&mutex);
    const known_kernel *known = find_kernel(kernel, false);
    if (wait_count) fake_real.WaitForEvents(wait_count, wait);
    const int count = known ? take_snapshots(queue, known, snapshots) : 0;
    pthread_mutex_unlock(&mutex);
    const cl_int code = fake_real.EnqueueNDRangeKernel(queue, kernel, dims, offset, global, local,
                                                       wait_count, wait, out_event);
    fake_real.Finish(queue);
    bool is_done = code != CL_SUCCESS;
    for (int i = 0; i < count; i++) {
        if (!is_done) is_done = spoil(queue, &snapshots[i]);
        free(snapshots[i].data);
    }
    return code;
}

/* ---- for tests ---- */

#ifndef FAKE_CL_LIBRARY

void fake_cl_configure(const char *specification)
{
    read_specification(specification);
    for (int i = 0; i < FAKE_ENTRY_COUNT; i++)
        atomic_store(&calls[i], 0);
    atomic_store(&living_objects, 0);
    atomic_store(&strikes, 0);
    atomic_store(&matching_launches, 0);
}

void fake_cl_install(const char *specification)
{
    static tp_cl_api table;
    pthread_once(&load_once, load_real);
    fake_cl_configure(specification);
    fake_fill_table(&table);
    tp_cl_api_replace(&table);
}

void fake_cl_remove(void)
{
    tp_cl_api_replace(NULL);
}

int fake_cl_calls(const char *call)
{
    return atomic_load(&calls[find_entry(call)]);
}

int fake_cl_entry_count(void)
{
    return FAKE_ENTRY_COUNT;
}

const char *fake_cl_entry_name(int index)
{
    return entry_names[index];
}

int fake_cl_living_objects(void)
{
    return atomic_load(&living_objects);
}

int fake_cl_strikes(void)
{
    return atomic_load(&strikes);
}

#endif
