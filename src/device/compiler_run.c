/* SPDX-License-Identifier: Apache-2.0
 * Starting compiling processes and giving them work. Which programs are compiled by whom is left to who is free
 * first; the largest go first, because the last ones decide how long all of it takes. */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "core/alloc.h"
#include "core/env.h"
#include "core/file.h"
#include "core/log.h"
#include "device/compiler.h"

enum { MAX_PROCESSES = 16, MAX_CRASHES = 2, MAX_KILLS = 3, PATH_BYTES = 4096 };

typedef struct process {
    pid_t id;
    int socket;          /* -1: there is none */
    bool is_ready;       /* it has opened the device */
    tp_compile_job *job; /* NULL: it waits for one */
} process;

struct tp_compilers {
    tp_device *device;
    char path[PATH_BYTES];
    bool is_broken; /* one did not get as far as opening the device */
    process processes[MAX_PROCESSES];
};

/* ---- where it is ---- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Beside the library (a build), or where it is installed. */
static bool find_beside(char out_path[PATH_BYTES])
{
    static const char *const places[] = {"tpucl-compiler", "../libexec/tpucl/tpucl-compiler",
                                         "../../libexec/tpucl/tpucl-compiler"};
    Dl_info library;
    char folder[PATH_BYTES];
    if (!dladdr((const void *)tp_compilers_create, &library) || !library.dli_fname) return false;
    const char *slash = strrchr(library.dli_fname, '/');
    if (!slash || (size_t)(slash - library.dli_fname) >= sizeof folder - 64) return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - library.dli_fname), library.dli_fname);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (snprintf(out_path, PATH_BYTES, "%s/%s", folder, places[i]) < PATH_BYTES &&
            is_program(out_path))
            return true;
    }
    return false;
}

static bool find_program(char out_path[PATH_BYTES])
{
    const char *given = tp_env_text(TP_ENV_COMPILER);
    if (!given) return find_beside(out_path);
    return snprintf(out_path, PATH_BYTES, "%s", given) < PATH_BYTES && is_program(out_path);
}

tp_compilers *tp_compilers_create(tp_device *device)
{
    char path[PATH_BYTES];
    if (!(device->quirks.effects & TP_QUIRK_ONE_COMPILER) || device->is_sub_device ||
        !tp_device_keeps_binaries(device) || !find_program(path))
        return NULL;
    tp_compilers *compilers = TP_NEW(tp_compilers);
    if (!compilers) return NULL; /* it only takes longer */
    compilers->device = device;
    memcpy(compilers->path, path, sizeof path);
    for (int i = 0; i < MAX_PROCESSES; i++)
        compilers->processes[i].socket = -1;
    return compilers;
}

/* ---- processes ---- */

/* Closes the socket, so that the process ends when it has finished what it does. */
static int stop(process *p)
{
    int state = 0;
    if (p->socket < 0) return 0;
    close(p->socket);
    p->socket = -1;
    p->is_ready = false;
    if (waitpid(p->id, &state, 0) != p->id) state = 0;
    return state;
}

void tp_compilers_destroy(tp_compilers *compilers)
{
    if (!compilers) return;
    for (int i = 0; i < MAX_PROCESSES; i++)
        (void)stop(&compilers->processes[i]);
    tp_free(compilers);
}

/* In a group of its own: Ctrl-C is for the training, which may want to evaluate before it ends. */
static int spawn(tp_compilers *compilers, int socket, pid_t *out_id)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char *arguments[] = {compilers->path, compilers->device->label, compilers->device->identity,
                         (char *)tp_program_cache_folder(compilers->device->options.cache), NULL};
    if (posix_spawn_file_actions_init(&files) != 0) return -1;
    int result = posix_spawnattr_init(&attributes);
    if (result == 0) {
        result = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
        for (int out = STDOUT_FILENO; result == 0 && out <= STDERR_FILENO; out++)
            result =
                posix_spawn_file_actions_addopen(&files, out, "/dev/null", 1 /* O_WRONLY */, 0);
        if (result == 0) result = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        if (result == 0)
            result = posix_spawn(out_id, compilers->path, &files, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return result;
}

static void start(tp_compilers *compilers, process *p)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        compilers->is_broken = true;
        return;
    }
    if (spawn(compilers, pair[1], &p->id) == 0) {
        p->socket = pair[0];
    } else {
        close(pair[0]);
        compilers->is_broken = true;
    }
    close(pair[1]);
}

static bool send_all(int socket, const void *bytes, size_t count)
{
    for (const char *at = bytes; count;) {
        const ssize_t sent = send(socket, at, count, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

static bool send_job(const process *p, const tp_compile_job *job)
{
    return send_all(p->socket, &job->request, sizeof job->request) &&
           send_all(p->socket, job->label, job->request.label_bytes) &&
           send_all(p->socket, job->options, job->request.options_bytes) &&
           send_all(p->socket, job->source, job->request.source_bytes);
}

/* ---- all jobs ---- */

typedef struct run {
    tp_compilers *compilers;
    tp_compile_job **jobs; /* those that nobody has begun, the next one last */
    uint32_t waiting, busy;
    tp_compile_callback callback;
    void *user;
} run;

static void finish(run *r, tp_compile_job *job, double seconds)
{
    job->is_done = true;
    if (r->callback) r->callback(job, seconds, r->user);
}

/* What a system or a person sends, short of memory or patience; it says nothing about the compiler. */
static bool was_ended_from_outside(int state)
{
    if (!WIFSIGNALED(state)) return false;
    switch (WTERMSIG(state)) {
    case SIGKILL:
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
    case SIGXCPU:
        return true;
    default:
        return false;
    }
}

/* A process that is gone takes its job with it, if it was that which ended it; one that had nothing to do for a while
 * ends by itself. */
static void bury(run *r, process *p)
{
    tp_compile_job *job = p->job;
    const bool was_ready = p->is_ready;
    const int state = stop(p);
    p->job = NULL;
    if (!was_ready) r->compilers->is_broken = true;
    if (!job) return;
    r->busy--;
    if (was_ready && was_ended_from_outside(state)) {
        if (++job->kills < MAX_KILLS) {
            r->jobs[r->waiting++] = job;
            return;
        }
        TP_LOG_WARNING("device",
                       "the compiler was ended by signal %d %d times while it built '%s', which is "
                       "now built without it",
                       WTERMSIG(state), MAX_KILLS, job->label);
    } else if (was_ready && ++job->crashes == MAX_CRASHES) {
        TP_LOG_WARNING("device", "the compiler ended with %s %d while it built '%s'",
                       WIFSIGNALED(state) ? "signal" : "code",
                       WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state), job->label);
        job->has_crashed = true;
        finish(r, job, 0);
    } else {
        r->jobs[r->waiting++] = job;
    }
}

static void give_work(run *r, process *p)
{
    while (r->waiting && !p->job && !r->compilers->is_broken) {
        if (p->socket < 0) start(r->compilers, p);
        if (p->socket < 0) return;
        p->job = r->jobs[--r->waiting];
        r->busy++;
        if (!send_job(p, p->job)) bury(r, p);
    }
}

static void hear(run *r, process *p)
{
    tp_compiler_reply message;
    if (recv(p->socket, &message, sizeof message, MSG_WAITALL) != (ssize_t)sizeof message ||
        message.magic != TP_COMPILER_MAGIC) {
        bury(r, p);
        return;
    }
    p->is_ready = true;
    if (message.outcome == TP_COMPILER_READY || !p->job) return;
    tp_compile_job *job = p->job;
    p->job = NULL;
    r->busy--;
    TP_LOG_DEBUG("device", "built '%s' in %.3f s in process %ld%s", job->label, message.seconds,
                 (long)p->id, message.outcome == TP_COMPILER_STORED ? "" : ", not stored");
    finish(r, job, message.seconds);
}

static void wait_for_any(run *r, uint32_t count)
{
    struct pollfd waiting[MAX_PROCESSES];
    process *processes = r->compilers->processes;
    for (uint32_t i = 0; i < count; i++)
        waiting[i] =
            (struct pollfd){.fd = processes[i].job ? processes[i].socket : -1, .events = POLLIN};
    if (poll(waiting, count, -1) <= 0) return;
    for (uint32_t i = 0; i < count; i++)
        if (waiting[i].fd >= 0 && waiting[i].revents) hear(r, &processes[i]);
}

static int by_size(const void *left, const void *right)
{
    const tp_compile_job *a = *(tp_compile_job *const *)left, *b = *(tp_compile_job *const *)right;
    return (a->request.source_bytes > b->request.source_bytes) -
           (a->request.source_bytes < b->request.source_bytes);
}

void tp_compilers_run(tp_compilers *compilers, tp_compile_job *jobs, uint32_t count,
                      tp_compile_callback callback, void *user)
{
    run r = {.compilers = compilers, .callback = callback, .user = user, .waiting = count};
    uint32_t processes = (uint32_t)tp_thread_processor_count();
    if (processes > MAX_PROCESSES) processes = MAX_PROCESSES;
    if (processes > count) processes = count;
    r.jobs = TP_NEW_ARRAY(tp_compile_job *, (size_t)count + 1);
    if (!r.jobs) return;
    for (uint32_t i = 0; i < count; i++)
        r.jobs[i] = &jobs[i];
    qsort(r.jobs, count, sizeof *r.jobs, by_size);
    for (;;) {
        for (uint32_t i = 0; i < processes; i++)
            give_work(&r, &compilers->processes[i]);
        if (!r.busy) break; /* done, or broken */
        wait_for_any(&r, processes);
    }
    if (compilers->is_broken)
        TP_LOG_WARNING("device", "'%s' does not work here: kernels are built one after the other",
                       compilers->path);
    tp_free(r.jobs);
}
