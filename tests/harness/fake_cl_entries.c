/* SPDX-License-Identifier: Apache-2.0
 * The misbehaving OpenCL's entry points: count, fail if told so, answer what the specification
 * changes, or forward. Calls that wait or release do their work even when they are to fail, because
 * what comes after relies on it and cannot know better. */
#include <stdio.h>
#include <string.h>
#include "harness/fake_cl_state.h"

#ifdef FAKE_CL_LIBRARY
#define FAKE(name) cl##name
#define STATIC
#else
#define FAKE(name) fake_##name
#define STATIC static
#endif

#define ENTER(name)                                                                                \
    do {                                                                                           \
        cl_int enter_code_;                                                                        \
        if (fake_enter(FAKE_##name, &enter_code_)) return enter_code_;                             \
    } while (0)

/* For calls that give an object and a code. */
#define ENTER_OBJECT(name, out_code)                                                               \
    do {                                                                                           \
        cl_int enter_code_;                                                                        \
        if (fake_enter(FAKE_##name, &enter_code_)) {                                               \
            if (out_code) *(out_code) = enter_code_;                                               \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

/* For calls that do their work in any case. */
#define WORK_THEN_MAYBE_FAIL(name, work)                                                           \
    do {                                                                                           \
        cl_int enter_code_;                                                                        \
        const bool enter_fails_ = fake_enter(FAKE_##name, &enter_code_);                           \
        const cl_int work_code_ = (work);                                                          \
        return enter_fails_ ? enter_code_ : work_code_;                                            \
    } while (0)

static void count_made(const void *object)
{
    if (object) fake_count_object(1);
}

static cl_int count_event(cl_int code, const cl_event *event)
{
    if (code == CL_SUCCESS && event) fake_count_object(1);
    return code;
}

static cl_int count_released(cl_int code)
{
    if (code == CL_SUCCESS) fake_count_object(-1);
    return code;
}

static cl_int answer(const void *value, size_t value_bytes, size_t room, void *out_value,
                     size_t *out_bytes)
{
    if (out_bytes) *out_bytes = value_bytes;
    if (!out_value) return CL_SUCCESS;
    if (room < value_bytes) return CL_INVALID_VALUE;
    memcpy(out_value, value, value_bytes);
    return CL_SUCCESS;
}

/* ---- platforms and devices ---- */

STATIC cl_int CL_API_CALL FAKE(GetPlatformIDs)(cl_uint room, cl_platform_id *ids,
                                               cl_uint *out_count)
{
    ENTER(GetPlatformIDs);
    const fake_platforms kind = fake_wanted.platforms;
    if (kind == FAKE_PLATFORMS_NONE) return -1001;
    if (kind == FAKE_PLATFORMS_ZERO) {
        if (out_count) *out_count = 0;
        return CL_SUCCESS;
    }
    if (kind == FAKE_PLATFORMS_REAL || !ids || room < 2)
        return fake_real.GetPlatformIDs(room, ids, out_count);
    cl_uint count = 0;
    const cl_int code = fake_real.GetPlatformIDs(room - 1, ids + 1, &count);
    ids[0] = fake_extra_platform;
    if (out_count) *out_count = code == CL_SUCCESS ? count + 1 : 1;
    return CL_SUCCESS;
}

STATIC cl_int CL_API_CALL FAKE(GetPlatformInfo)(cl_platform_id id, cl_platform_info what,
                                                size_t room, void *out, size_t *out_bytes)
{
    ENTER(GetPlatformInfo);
    if (id != fake_extra_platform) return fake_real.GetPlatformInfo(id, what, room, out, out_bytes);
    if (fake_wanted.platforms == FAKE_PLATFORMS_NAMELESS) return CL_INVALID_PLATFORM;
    const char *text = what == CL_PLATFORM_NAME ? "A Misbehaving Platform" : "OpenCL 1.2 fake";
    return answer(text, strlen(text) + 1, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(GetDeviceIDs)(cl_platform_id id, cl_device_type type, cl_uint room,
                                             cl_device_id *ids, cl_uint *out_count)
{
    ENTER(GetDeviceIDs);
    if (id != fake_extra_platform) return fake_real.GetDeviceIDs(id, type, room, ids, out_count);
    return fake_wanted.platforms == FAKE_PLATFORMS_EMPTY ? CL_DEVICE_NOT_FOUND
                                                         : CL_OUT_OF_HOST_MEMORY;
}

STATIC cl_int CL_API_CALL FAKE(GetDeviceInfo)(cl_device_id id, cl_device_info what, size_t room,
                                              void *out, size_t *out_bytes)
{
    ENTER(GetDeviceInfo);
    const fake_specification *w = &fake_wanted;
    if (w->devices_broken) return CL_INVALID_DEVICE;
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && w->max_alloc) {
        const cl_ulong value = w->max_alloc;
        return answer(&value, sizeof value, room, out, out_bytes);
    }
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE && w->max_group)
        return answer(&w->max_group, sizeof w->max_group, room, out, out_bytes);
    if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN && w->align_bits)
        return answer(&w->align_bits, sizeof w->align_bits, room, out, out_bytes);
    if (what == CL_DRIVER_VERSION && w->driver[0])
        return answer(w->driver, strlen(w->driver) + 1, room, out, out_bytes);
    if (what == CL_DEVICE_VERSION && w->version[0])
        return answer(w->version, strlen(w->version) + 1, room, out, out_bytes);
    return fake_real.GetDeviceInfo(id, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(CreateSubDevices)(cl_device_id id,
                                                 const cl_device_partition_property *how,
                                                 cl_uint room, cl_device_id *out_ids,
                                                 cl_uint *out_count)
{
    ENTER(CreateSubDevices);
    cl_uint count = 0;
    const cl_int code = fake_real.CreateSubDevices(id, how, room, out_ids, &count);
    if (code == CL_SUCCESS && out_ids) fake_count_object((int)count);
    if (out_count) *out_count = count;
    return code;
}

STATIC cl_int CL_API_CALL FAKE(ReleaseDevice)(cl_device_id id)
{
    WORK_THEN_MAYBE_FAIL(ReleaseDevice, count_released(fake_real.ReleaseDevice(id)));
}

/* ---- contexts and queues ---- */

STATIC cl_context CL_API_CALL
FAKE(CreateContext)(const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
                    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                    void *user, cl_int *out_code)
{
    ENTER_OBJECT(CreateContext, out_code);
    cl_context context = fake_real.CreateContext(properties, count, ids, notify, user, out_code);
    count_made(context);
    return context;
}

STATIC cl_int CL_API_CALL FAKE(ReleaseContext)(cl_context context)
{
    WORK_THEN_MAYBE_FAIL(ReleaseContext, count_released(fake_real.ReleaseContext(context)));
}

STATIC cl_command_queue CL_API_CALL FAKE(CreateCommandQueue)(cl_context context, cl_device_id id,
                                                             cl_command_queue_properties properties,
                                                             cl_int *out_code)
{
    ENTER_OBJECT(CreateCommandQueue, out_code);
    cl_command_queue queue = fake_real.CreateCommandQueue(context, id, properties, out_code);
    count_made(queue);
    return queue;
}

STATIC cl_int CL_API_CALL FAKE(GetCommandQueueInfo)(cl_command_queue queue,
                                                    cl_command_queue_info what, size_t room,
                                                    void *out, size_t *out_bytes)
{
    ENTER(GetCommandQueueInfo);
    return fake_real.GetCommandQueueInfo(queue, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(ReleaseCommandQueue)(cl_command_queue queue)
{
    WORK_THEN_MAYBE_FAIL(ReleaseCommandQueue, count_released(fake_real.ReleaseCommandQueue(queue)));
}

STATIC cl_int CL_API_CALL FAKE(Flush)(cl_command_queue queue)
{
    WORK_THEN_MAYBE_FAIL(Flush, fake_real.Flush(queue));
}

STATIC cl_int CL_API_CALL FAKE(Finish)(cl_command_queue queue)
{
    WORK_THEN_MAYBE_FAIL(Finish, fake_real.Finish(queue));
}

/* ---- memory ---- */

STATIC cl_mem CL_API_CALL FAKE(CreateBuffer)(cl_context context, cl_mem_flags flags, size_t bytes,
                                             void *host, cl_int *out_code)
{
    ENTER_OBJECT(CreateBuffer, out_code);
    if (fake_wanted.max_alloc && bytes > fake_wanted.max_alloc) {
        if (out_code) *out_code = CL_INVALID_BUFFER_SIZE;
        return NULL;
    }
    cl_mem memory = fake_real.CreateBuffer(context, flags, bytes, host, out_code);
    count_made(memory);
    if (memory) fake_note_buffer(memory, bytes);
    return memory;
}

STATIC cl_mem CL_API_CALL FAKE(CreateSubBuffer)(cl_mem whole, cl_mem_flags flags,
                                                cl_buffer_create_type type, const void *region,
                                                cl_int *out_code)
{
    ENTER_OBJECT(CreateSubBuffer, out_code);
    cl_mem memory = fake_real.CreateSubBuffer(whole, flags, type, region, out_code);
    count_made(memory);
    if (memory) fake_note_buffer(memory, ((const cl_buffer_region *)region)->size);
    return memory;
}

STATIC cl_int CL_API_CALL FAKE(ReleaseMemObject)(cl_mem memory)
{
    fake_forget_buffer(memory);
    WORK_THEN_MAYBE_FAIL(ReleaseMemObject, count_released(fake_real.ReleaseMemObject(memory)));
}

STATIC cl_int CL_API_CALL FAKE(EnqueueReadBuffer)(cl_command_queue queue, cl_mem memory,
                                                  cl_bool is_blocking, size_t offset, size_t bytes,
                                                  void *dst, cl_uint wait_count,
                                                  const cl_event *wait, cl_event *out_event)
{
    ENTER(EnqueueReadBuffer);
    const bool spoils = fake_wanted.corrupt_reads && bytes;
    const cl_int code =
        fake_real.EnqueueReadBuffer(queue, memory, spoils ? CL_TRUE : is_blocking, offset, bytes,
                                    dst, wait_count, wait, out_event);
    if (spoils && code == CL_SUCCESS) *(unsigned char *)dst ^= 1;
    return count_event(code, out_event);
}

STATIC cl_int CL_API_CALL FAKE(EnqueueWriteBuffer)(cl_command_queue queue, cl_mem memory,
                                                   cl_bool is_blocking, size_t offset, size_t bytes,
                                                   const void *src, cl_uint wait_count,
                                                   const cl_event *wait, cl_event *out_event)
{
    ENTER(EnqueueWriteBuffer);
    return count_event(fake_real.EnqueueWriteBuffer(queue, memory, is_blocking, offset, bytes, src,
                                                    wait_count, wait, out_event),
                       out_event);
}

STATIC cl_int CL_API_CALL FAKE(EnqueueCopyBuffer)(cl_command_queue queue, cl_mem src, cl_mem dst,
                                                  size_t src_offset, size_t dst_offset,
                                                  size_t bytes, cl_uint wait_count,
                                                  const cl_event *wait, cl_event *out_event)
{
    ENTER(EnqueueCopyBuffer);
    return count_event(fake_real.EnqueueCopyBuffer(queue, src, dst, src_offset, dst_offset, bytes,
                                                   wait_count, wait, out_event),
                       out_event);
}

STATIC cl_int CL_API_CALL FAKE(EnqueueFillBuffer)(cl_command_queue queue, cl_mem memory,
                                                  const void *pattern, size_t pattern_bytes,
                                                  size_t offset, size_t bytes, cl_uint wait_count,
                                                  const cl_event *wait, cl_event *out_event)
{
    ENTER(EnqueueFillBuffer);
    return count_event(fake_real.EnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset,
                                                   bytes, wait_count, wait, out_event),
                       out_event);
}

STATIC void *CL_API_CALL FAKE(EnqueueMapBuffer)(cl_command_queue queue, cl_mem memory,
                                                cl_bool is_blocking, cl_map_flags flags,
                                                size_t offset, size_t bytes, cl_uint wait_count,
                                                const cl_event *wait, cl_event *out_event,
                                                cl_int *out_code)
{
    ENTER_OBJECT(EnqueueMapBuffer, out_code);
    void *data = fake_real.EnqueueMapBuffer(queue, memory, is_blocking, flags, offset, bytes,
                                            wait_count, wait, out_event, out_code);
    if (data && out_event) fake_count_object(1);
    return data;
}

STATIC cl_int CL_API_CALL FAKE(EnqueueUnmapMemObject)(cl_command_queue queue, cl_mem memory,
                                                      void *data, cl_uint wait_count,
                                                      const cl_event *wait, cl_event *out_event)
{
    WORK_THEN_MAYBE_FAIL(EnqueueUnmapMemObject,
                         count_event(fake_real.EnqueueUnmapMemObject(queue, memory, data,
                                                                     wait_count, wait, out_event),
                                     out_event));
}

STATIC cl_int CL_API_CALL FAKE(EnqueueMarkerWithWaitList)(cl_command_queue queue,
                                                          cl_uint wait_count, const cl_event *wait,
                                                          cl_event *out_event)
{
    ENTER(EnqueueMarkerWithWaitList);
    return count_event(fake_real.EnqueueMarkerWithWaitList(queue, wait_count, wait, out_event),
                       out_event);
}

/* ---- programs and kernels ---- */

STATIC cl_program CL_API_CALL FAKE(CreateProgramWithSource)(cl_context context, cl_uint count,
                                                            const char **texts,
                                                            const size_t *lengths, cl_int *out_code)
{
    ENTER_OBJECT(CreateProgramWithSource, out_code);
    cl_program program =
        fake_real.CreateProgramWithSource(context, count, texts, lengths, out_code);
    count_made(program);
    return program;
}

STATIC cl_program CL_API_CALL FAKE(CreateProgramWithBinary)(cl_context context, cl_uint count,
                                                            const cl_device_id *ids,
                                                            const size_t *lengths,
                                                            const unsigned char **binaries,
                                                            cl_int *binary_status, cl_int *out_code)
{
    ENTER_OBJECT(CreateProgramWithBinary, out_code);
    if (fake_wanted.refuse_binaries) {
        if (out_code) *out_code = CL_INVALID_BINARY;
        return NULL;
    }
    cl_program program = fake_real.CreateProgramWithBinary(context, count, ids, lengths, binaries,
                                                           binary_status, out_code);
    count_made(program);
    return program;
}

STATIC cl_int CL_API_CALL FAKE(BuildProgram)(cl_program program, cl_uint count,
                                             const cl_device_id *ids, const char *options,
                                             void(CL_CALLBACK *notify)(cl_program, void *),
                                             void *user)
{
    ENTER(BuildProgram);
    return fake_real.BuildProgram(program, count, ids, options, notify, user);
}

STATIC cl_int CL_API_CALL FAKE(GetProgramInfo)(cl_program program, cl_program_info what,
                                               size_t room, void *out, size_t *out_bytes)
{
    ENTER(GetProgramInfo);
    return fake_real.GetProgramInfo(program, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(GetProgramBuildInfo)(cl_program program, cl_device_id id,
                                                    cl_program_build_info what, size_t room,
                                                    void *out, size_t *out_bytes)
{
    ENTER(GetProgramBuildInfo);
    return fake_real.GetProgramBuildInfo(program, id, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(ReleaseProgram)(cl_program program)
{
    WORK_THEN_MAYBE_FAIL(ReleaseProgram, count_released(fake_real.ReleaseProgram(program)));
}

STATIC cl_kernel CL_API_CALL FAKE(CreateKernel)(cl_program program, const char *name,
                                                cl_int *out_code)
{
    ENTER_OBJECT(CreateKernel, out_code);
    cl_kernel kernel = fake_real.CreateKernel(program, name, out_code);
    count_made(kernel);
    return kernel;
}

STATIC cl_int CL_API_CALL FAKE(GetKernelInfo)(cl_kernel kernel, cl_kernel_info what, size_t room,
                                              void *out, size_t *out_bytes)
{
    ENTER(GetKernelInfo);
    return fake_real.GetKernelInfo(kernel, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(GetKernelWorkGroupInfo)(cl_kernel kernel, cl_device_id id,
                                                       cl_kernel_work_group_info what, size_t room,
                                                       void *out, size_t *out_bytes)
{
    ENTER(GetKernelWorkGroupInfo);
    if (what == CL_KERNEL_WORK_GROUP_SIZE && fake_wanted.max_group)
        return answer(&fake_wanted.max_group, sizeof fake_wanted.max_group, room, out, out_bytes);
    return fake_real.GetKernelWorkGroupInfo(kernel, id, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(SetKernelArg)(cl_kernel kernel, cl_uint index, size_t bytes,
                                             const void *value)
{
    ENTER(SetKernelArg);
    fake_note_arg(kernel, index, bytes, value);
    return fake_real.SetKernelArg(kernel, index, bytes, value);
}

STATIC cl_int CL_API_CALL FAKE(ReleaseKernel)(cl_kernel kernel)
{
    fake_forget_kernel(kernel);
    WORK_THEN_MAYBE_FAIL(ReleaseKernel, count_released(fake_real.ReleaseKernel(kernel)));
}

STATIC cl_int CL_API_CALL FAKE(EnqueueNDRangeKernel)(cl_command_queue queue, cl_kernel kernel,
                                                     cl_uint dims, const size_t *offset,
                                                     const size_t *global, const size_t *local,
                                                     cl_uint wait_count, const cl_event *wait,
                                                     cl_event *out_event)
{
    ENTER(EnqueueNDRangeKernel);
    size_t items = 1;
    for (cl_uint i = 0; local && i < dims; i++)
        items *= local[i];
    if (fake_wanted.max_group && items > fake_wanted.max_group) return CL_INVALID_WORK_GROUP_SIZE;
    return count_event(
        fake_launch(queue, kernel, dims, offset, global, local, wait_count, wait, out_event),
        out_event);
}

/* ---- events ---- */

STATIC cl_int CL_API_CALL FAKE(WaitForEvents)(cl_uint count, const cl_event *events)
{
    WORK_THEN_MAYBE_FAIL(WaitForEvents, fake_real.WaitForEvents(count, events));
}

STATIC cl_int CL_API_CALL FAKE(GetEventInfo)(cl_event event, cl_event_info what, size_t room,
                                             void *out, size_t *out_bytes)
{
    ENTER(GetEventInfo);
    return fake_real.GetEventInfo(event, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(GetEventProfilingInfo)(cl_event event, cl_profiling_info what,
                                                      size_t room, void *out, size_t *out_bytes)
{
    ENTER(GetEventProfilingInfo);
    return fake_real.GetEventProfilingInfo(event, what, room, out, out_bytes);
}

STATIC cl_int CL_API_CALL FAKE(RetainEvent)(cl_event event)
{
    ENTER(RetainEvent);
    return count_event(fake_real.RetainEvent(event), &event);
}

STATIC cl_int CL_API_CALL FAKE(ReleaseEvent)(cl_event event)
{
    WORK_THEN_MAYBE_FAIL(ReleaseEvent, count_released(fake_real.ReleaseEvent(event)));
}

#ifndef FAKE_CL_LIBRARY
void fake_fill_table(tp_cl_api *out_table)
{
#define FILL_ENTRY(name) out_table->name = fake_##name;
    TP_CL_ENTRY_LIST(FILL_ENTRY)
#undef FILL_ENTRY
}
#endif
