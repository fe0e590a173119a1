/* SPDX-License-Identifier: Apache-2.0
 * What is said of a step that does not fit. The message has a fixed size (core/status.h), so what matters most comes
 * first: numbers, remedies, kinds, tensors.
 */
#include <stdarg.h>
#include <stdio.h>
#include "plan/memory.h"

typedef struct text {
    char bytes[1900];
    size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void say(text *t, const char *format, ...)
{
    va_list arguments;
    if (t->used + 1 >= sizeof t->bytes) return;
    va_start(arguments, format);
    const int count = vsnprintf(t->bytes + t->used, sizeof t->bytes - t->used, format, arguments);
    va_end(arguments);
    if (count > 0) t->used += (size_t)count;
}

static void say_bytes(text *t, uint64_t bytes)
{
    if (bytes >= (uint64_t)1 << 30)
        say(t, "%.2f GiB", (double)bytes / 0x1p30);
    else
        say(t, "%.2f MiB", (double)bytes / 0x1p20);
}

static void say_kinds(text *t, const tp_memory_view *view)
{
    const char *separator = "";
    for (int kind = 0; kind < TP_MEMORY_KIND_COUNT; kind++) {
        if (view->bytes[kind] < view->total / 1000) continue;
        say(t, "%s%s ", separator, tp_memory_kind_text((tp_memory_kind)kind));
        say_bytes(t, view->bytes[kind]);
        separator = ", ";
    }
}

static void say_tensors(text *t, const tp_memory_plan *plan)
{
    for (int32_t i = 0; i < plan->largest_count; i++) {
        const tp_memory_tensor *tensor = &plan->largest[i];
        say(t, "\n    ");
        say_bytes(t, tensor->tpu);
        say(t, " %s %s", tensor->type, *tensor->layer ? tensor->layer : tensor->name);
        if (tensor->padding > 1.005) say(t, ", %.1f times its bytes", tensor->padding);
    }
}

tpucl_status tp_memory_refuse(const tp_memory_plan *plan, const tp_topology *topology,
                              int64_t per_core_batch, const tp_remedy *remedies,
                              int32_t remedy_count)
{
    const bool is_tpu = plan->tpu.total >= plan->here.total;
    const tp_memory_view *view = is_tpu ? &plan->tpu : &plan->here;
    const uint64_t capacity = tp_memory_capacity(topology);
    text t = {.used = 0};
    say(&t, "a step of %lld examples per core (%lld on %d cores) needs ", (long long)per_core_batch,
        (long long)per_core_batch * topology->cores, topology->cores);
    say_bytes(&t, view->total);
    say(&t, " on each core of '%s', which has ", topology->name);
    say_bytes(&t, capacity);
    say(&t, ": ");
    say_bytes(&t, view->total - capacity);
    say(&t, " too much%s", is_tpu && plan->is_tiled ? " (in tiles, as a TPU holds it)" : "");
    for (int32_t i = 0; i < remedy_count; i++)
        say(&t, "%s%s", i ? "; " : "\n  what helps: ", remedies[i].text);
    say(&t, "\n  ");
    say_kinds(&t, view);
    say(&t, "\n  largest at the peak, %s:", view->peak_at);
    say_tensors(&t, plan);
    return TP_FAIL(TPUCL_OUT_OF_DEVICE_MEMORY, "%s", t.bytes);
}
