/* SPDX-License-Identifier: Apache-2.0
 * Kernel objects and launches. Work sizes are checked against what the driver says about this very
 * kernel: a work-group that is too large fails here with numbers, not in the driver with a code. */
#include "device/internal.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"

static void read_limits(tp_device_kernel *kernel)
{
    const tp_cl_api *cl = kernel->device->cl;
    const cl_device_id id = kernel->device->id;
    tp_device_kernel_limits *limits = &kernel->limits;
    cl_ulong local = 0, private_bytes = 0;
    cl_uint arguments = 0;
    /* Each answer may be missing; zero then means "not known". */
    (void)cl->GetKernelWorkGroupInfo(kernel->kernel, id, CL_KERNEL_WORK_GROUP_SIZE,
                                     sizeof limits->max_work_group_size,
                                     &limits->max_work_group_size, NULL);
    (void)cl->GetKernelWorkGroupInfo(
        kernel->kernel, id, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
        sizeof limits->preferred_work_group_multiple, &limits->preferred_work_group_multiple, NULL);
    (void)cl->GetKernelWorkGroupInfo(kernel->kernel, id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local,
                                     &local, NULL);
    (void)cl->GetKernelWorkGroupInfo(kernel->kernel, id, CL_KERNEL_PRIVATE_MEM_SIZE,
                                     sizeof private_bytes, &private_bytes, NULL);
    (void)cl->GetKernelWorkGroupInfo(kernel->kernel, id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof limits->required_work_group_size,
                                     limits->required_work_group_size, NULL);
    (void)cl->GetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    limits->local_memory_bytes = local;
    limits->private_memory_bytes = private_bytes;
    limits->arg_count = arguments;
    if (!limits->max_work_group_size ||
        limits->max_work_group_size > kernel->device->caps.max_work_group_size)
        limits->max_work_group_size = kernel->device->caps.max_work_group_size;
}

tpucl_status tp_device_kernel_create(tp_device_program *program, const char *entry,
                                     tp_device_kernel **out_kernel)
{
    *out_kernel = NULL;
    tp_device *device = program->device;
    tp_device_kernel *kernel = TP_NEW(tp_device_kernel);
    if (!kernel) return TPUCL_OUT_OF_MEMORY;
    atomic_fetch_add(&program->references, 1);
    tp_device_retain(device);
    kernel->program = program;
    kernel->device = device;
    snprintf(kernel->name, sizeof kernel->name, "%s", entry);
    cl_int code = CL_SUCCESS;
    kernel->kernel = device->cl->CreateKernel(program->program, entry, &code);
    if (!kernel->kernel || code != CL_SUCCESS) {
        tp_device_kernel_destroy(kernel);
        return TP_CL_FAIL(code, "clCreateKernel", "kernel '%s' of program '%s' on device %s", entry,
                          program->label, device->label);
    }
    read_limits(kernel);
    *out_kernel = kernel;
    return TPUCL_OK;
}

void tp_device_kernel_destroy(tp_device_kernel *kernel)
{
    if (!kernel) return;
    if (kernel->kernel) (void)kernel->device->cl->ReleaseKernel(kernel->kernel);
    tp_device_program_release(kernel->program);
    tp_free(kernel);
}

void tp_device_kernel_get_limits(const tp_device_kernel *kernel,
                                 tp_device_kernel_limits *out_limits)
{
    *out_limits = kernel->limits;
}

static tpucl_status set_arg(tp_device_kernel *kernel, uint32_t index, size_t bytes,
                            const void *value, const char *what)
{
    TP_CL_TRY(kernel->device->cl->SetKernelArg(kernel->kernel, index, bytes, value),
              "clSetKernelArg",
              "argument %u (%s, %zu bytes) of kernel '%s', which has %u arguments", index, what,
              bytes, kernel->name, kernel->limits.arg_count);
    return TPUCL_OK;
}

tpucl_status tp_device_kernel_set_buffer(tp_device_kernel *kernel, uint32_t index,
                                         const tp_buffer *buffer)
{
    if (buffer->device != kernel->device)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "buffer '%s' is on device %s, kernel '%s' on device %s", buffer->label,
                       buffer->device->label, kernel->name, kernel->device->label);
    return set_arg(kernel, index, sizeof buffer->memory, &buffer->memory, buffer->label);
}

tpucl_status tp_device_kernel_set_bytes(tp_device_kernel *kernel, uint32_t index, const void *value,
                                        size_t bytes)
{
    return set_arg(kernel, index, bytes, value, "a value");
}

tpucl_status tp_device_kernel_set_local(tp_device_kernel *kernel, uint32_t index, size_t bytes)
{
    const uint64_t limit = kernel->device->caps.local_memory_bytes;
    if (bytes > limit)
        return TP_FAIL(TPUCL_UNSUPPORTED,
                       "kernel '%s' wants %zu bytes of local memory, device %s has %llu",
                       kernel->name, bytes, kernel->device->label, (unsigned long long)limit);
    return set_arg(kernel, index, bytes, NULL, "local memory");
}

/* "global 1x2x3, local 1x1x1" */
static void describe_sizes(const size_t global[3], const size_t local[3], char *out_text,
                           size_t room)
{
    if (local)
        snprintf(out_text, room, "global %zux%zux%zu, local %zux%zux%zu", global[0], global[1],
                 global[2], local[0], local[1], local[2]);
    else
        snprintf(out_text, room, "global %zux%zux%zu, local chosen by the driver", global[0],
                 global[1], global[2]);
}

static tpucl_status check_sizes(const tp_device_kernel *kernel, const size_t global[3],
                                const size_t local[3])
{
    const tp_device_kernel_limits *limits = &kernel->limits;
    const tp_device_caps *caps = &kernel->device->caps;
    char sizes[160];
    size_t items = 1;
    for (int i = 0; i < 3; i++) {
        describe_sizes(global, local, sizes, sizeof sizes);
        if (!local[i] || global[i] % local[i])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "kernel '%s': local size must divide global size: %s", kernel->name,
                           sizes);
        const size_t required = limits->required_work_group_size[i];
        if (required && required != local[i])
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "kernel '%s' requires local size %zu in dimension %d: %s", kernel->name,
                           required, i, sizes);
        if (local[i] > caps->max_work_item_sizes[i])
            return TP_FAIL(
                TPUCL_UNSUPPORTED,
                "kernel '%s': device %s takes at most %llu work-items in dimension %d: %s",
                kernel->name, kernel->device->label,
                (unsigned long long)caps->max_work_item_sizes[i], i, sizes);
        if (!tp_size_mul(items, local[i], &items)) items = SIZE_MAX;
    }
    if (items > limits->max_work_group_size)
        return TP_FAIL(
            TPUCL_UNSUPPORTED, "kernel '%s' takes work-groups of at most %zu on device %s '%s': %s",
            kernel->name, limits->max_work_group_size, kernel->device->label, caps->name, sizes);
    return TPUCL_OK;
}

tpucl_status tp_device_kernel_enqueue(tp_device_kernel *kernel, const size_t global[3],
                                      const size_t local[3], tp_event *const *wait,
                                      uint32_t wait_count, tp_event **out_event)
{
    tp_device *device = kernel->device;
    const tp_lane lane = TP_LANE_COMPUTE;
    if (out_event) *out_event = NULL;
    if (local && !local[0] && !local[1] && !local[2]) local = NULL;
    if (!global[0] || !global[1] || !global[2]) {
        TP_TRY(tp_lane_wait(device, lane, wait, wait_count));
        return out_event ? tp_lane_mark(device, lane, out_event) : TPUCL_OK;
    }
    if (local) TP_TRY(check_sizes(kernel, global, local));
    tp_lane_prepare_wait(device, lane, wait_count);
    cl_event event = NULL;
    const cl_int code = device->cl->EnqueueNDRangeKernel(
        device->queues[lane], kernel->kernel, 3, NULL, global, local, wait_count,
        wait_count ? tp_cl_events(wait) : NULL, out_event ? &event : NULL);
    if (code != CL_SUCCESS) {
        char sizes[160];
        describe_sizes(global, local, sizes, sizeof sizes);
        return TP_CL_FAIL(code, "clEnqueueNDRangeKernel", "kernel '%s', %s, on device %s '%s'",
                          kernel->name, sizes, device->label, device->caps.name);
    }
    if (out_event) *out_event = (tp_event *)event;
    return tp_lane_after_enqueue(device, lane, out_event);
}
