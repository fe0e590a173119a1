/* SPDX-License-Identifier: Apache-2.0
 * POSIX threads. A failing lock means a broken object, which is a bug of ours: debug builds stop
 * there. */
#include "core/thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/alloc.h"

static void check(int code)
{
    assert(code == 0);
    (void)code;
}

tpucl_status tp_mutex_init(tp_mutex *mutex)
{
    int code = pthread_mutex_init(mutex, NULL);
    if (code) return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, code, "cannot make a mutex");
    return TPUCL_OK;
}

void tp_mutex_deinit(tp_mutex *mutex)
{
    check(pthread_mutex_destroy(mutex));
}

void tp_mutex_lock(tp_mutex *mutex)
{
    check(pthread_mutex_lock(mutex));
}

void tp_mutex_unlock(tp_mutex *mutex)
{
    check(pthread_mutex_unlock(mutex));
}

tpucl_status tp_cond_init(tp_cond *cond)
{
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code) return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, code, "cannot make a condition");
    check(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    code = pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
    if (code) return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, code, "cannot make a condition");
    return TPUCL_OK;
}

void tp_cond_deinit(tp_cond *cond)
{
    check(pthread_cond_destroy(cond));
}

void tp_cond_wait(tp_cond *cond, tp_mutex *mutex)
{
    check(pthread_cond_wait(cond, mutex));
}

bool tp_cond_wait_for(tp_cond *cond, tp_mutex *mutex, uint64_t timeout_ns)
{
    enum { NS_PER_SECOND = 1000000000 };
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t ns = (uint64_t)end.tv_nsec + timeout_ns % NS_PER_SECOND;
    end.tv_sec += (time_t)(timeout_ns / NS_PER_SECOND + ns / NS_PER_SECOND);
    end.tv_nsec = (long)(ns % NS_PER_SECOND);
    int code = pthread_cond_timedwait(cond, mutex, &end);
    check(code == ETIMEDOUT ? 0 : code);
    return code != ETIMEDOUT;
}

void tp_cond_signal(tp_cond *cond)
{
    check(pthread_cond_signal(cond));
}

void tp_cond_broadcast(tp_cond *cond)
{
    check(pthread_cond_broadcast(cond));
}

void tp_once_run(tp_once *once, void (*function)(void))
{
    check(pthread_once(once, function));
}

struct tp_thread {
    pthread_t handle;
    char name[16]; /* Linux shows at most 15 characters */
    tpucl_status (*function)(void *user);
    void *user;
    tpucl_status status;
    tpucl_error record;
};

static void *run_thread(void *argument)
{
    tp_thread *thread = argument;
    pthread_setname_np(pthread_self(), thread->name);
    thread->status = thread->function(thread->user);
    if (thread->status != TPUCL_OK) tp_error_capture(&thread->record);
    return NULL;
}

tpucl_status tp_thread_create(const char *name, tpucl_status (*function)(void *user), void *user,
                              tp_thread **out_thread)
{
    *out_thread = NULL;
    tp_thread *thread = TP_NEW(tp_thread);
    if (!thread) return TPUCL_OUT_OF_MEMORY;
    snprintf(thread->name, sizeof thread->name, "%s", name);
    thread->function = function;
    thread->user = user;
    int code = pthread_create(&thread->handle, NULL, run_thread, thread);
    if (code) {
        tp_free(thread);
        return TP_FAIL_CODE(TPUCL_OUT_OF_MEMORY, code, "cannot start thread '%s': %s", name,
                            code == EAGAIN ? "the system has no threads left" : "system error");
    }
    *out_thread = thread;
    return TPUCL_OK;
}

tpucl_status tp_thread_join(tp_thread *thread)
{
    if (!thread) return TPUCL_OK;
    check(pthread_join(thread->handle, NULL));
    tpucl_status status = thread->status;
    if (status != TPUCL_OK) tp_error_restore(&thread->record);
    tp_free(thread);
    return status;
}

int tp_thread_processor_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}
