/* SPDX-License-Identifier: Apache-2.0
 * Lanes and events. OpenCL only promises that a command starts once its queue is flushed, so
 * whoever waits flushes first: a wait list flushes the other lanes of the device, a host wait the
 * queues of its events. */
#include "device/internal.h"

#include "core/alloc.h"

static const char *const lane_names[TP_LANE_COUNT] = {"compute", "upload", "download"};

void tp_device_set_synchronous(tp_device *device, bool synchronous)
{
    atomic_store(&device->is_synchronous, synchronous);
}

tpucl_status tp_lane_flush(tp_device *device, tp_lane lane)
{
    TP_CL_TRY(device->cl->Flush(device->queues[lane]), "clFlush", "%s lane of device %s '%s'",
              lane_names[lane], device->label, device->caps.name);
    return TPUCL_OK;
}

tpucl_status tp_lane_finish(tp_device *device, tp_lane lane)
{
    TP_CL_TRY(device->cl->Finish(device->queues[lane]), "clFinish", "%s lane of device %s '%s'",
              lane_names[lane], device->label, device->caps.name);
    return TPUCL_OK;
}

tpucl_status tp_device_finish(tp_device *device)
{
    /* All are flushed first: one may wait for another. */
    for (int lane = 0; lane < TP_LANE_COUNT; lane++)
        TP_TRY(tp_lane_flush(device, (tp_lane)lane));
    for (int lane = 0; lane < (device->has_one_lane ? 1 : TP_LANE_COUNT); lane++)
        TP_TRY(tp_lane_finish(device, (tp_lane)lane));
    return TPUCL_OK;
}

void tp_lane_prepare_wait(tp_device *device, tp_lane lane, uint32_t wait_count)
{
    if (!wait_count || device->has_one_lane) return;
    for (int other = 0; other < TP_LANE_COUNT; other++)
        if (other != (int)lane)
            (void)device->cl->Flush(device->queues[other]); /* the enqueue itself will fail */
}

tpucl_status tp_lane_after_enqueue(tp_device *device, tp_lane lane, tp_event **inout_event)
{
    if (!atomic_load(&device->is_synchronous)) return TPUCL_OK;
    const tpucl_status status = tp_lane_finish(device, lane);
    if (status != TPUCL_OK && inout_event) {
        tp_event_release(*inout_event);
        *inout_event = NULL;
    }
    return status;
}

/* Without `out_event` the marker is only a barrier: on an in-order queue both are the same thing.
 * */
static tpucl_status enqueue_marker(tp_device *device, tp_lane lane, tp_event *const *events,
                                   uint32_t count, tp_event **out_event)
{
    cl_event event = NULL;
    tp_lane_prepare_wait(device, lane, count);
    TP_CL_TRY(device->cl->EnqueueMarkerWithWaitList(device->queues[lane], count,
                                                    count ? tp_cl_events(events) : NULL, &event),
              "clEnqueueMarkerWithWaitList", "%s lane of device %s '%s', waiting for %u events",
              lane_names[lane], device->label, device->caps.name, count);
    if (out_event)
        *out_event = (tp_event *)event;
    else
        tp_event_release((tp_event *)event);
    return tp_lane_after_enqueue(device, lane, out_event);
}

tpucl_status tp_lane_wait(tp_device *device, tp_lane lane, tp_event *const *events, uint32_t count)
{
    return count ? enqueue_marker(device, lane, events, count, NULL) : TPUCL_OK;
}

tpucl_status tp_lane_mark(tp_device *device, tp_lane lane, tp_event **out_event)
{
    *out_event = NULL;
    return enqueue_marker(device, lane, NULL, 0, out_event);
}

void tp_event_release(tp_event *event)
{
    if (event) (void)tp_cl_api_current()->ReleaseEvent((cl_event)event);
}

tp_event *tp_event_retain(tp_event *event)
{
    if (!event || tp_cl_api_current()->RetainEvent((cl_event)event) != CL_SUCCESS) return NULL;
    return event;
}

static void flush_queue_of(const tp_cl_api *cl, cl_event event)
{
    cl_command_queue queue = NULL;
    if (cl->GetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) == CL_SUCCESS &&
        queue)
        (void)cl->Flush(queue);
}

static cl_int execution_status(const tp_cl_api *cl, cl_event event)
{
    cl_int status = CL_QUEUED;
    const cl_int code =
        cl->GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code == CL_SUCCESS ? status : code;
}

tpucl_status tp_event_wait(tp_event *const *events, uint32_t count)
{
    if (!count) return TPUCL_OK;
    const tp_cl_api *cl = tp_cl_api_current();
    const cl_event *waited = tp_cl_events(events);
    for (uint32_t i = 0; i < count; i++)
        flush_queue_of(cl, waited[i]);
    const cl_int code = cl->WaitForEvents(count, waited);
    if (code == CL_SUCCESS) return TPUCL_OK;
    for (uint32_t i = 0; i < count;
         i++) { /* the command's own code says more than "one of them failed" */
        const cl_int status = execution_status(cl, waited[i]);
        if (status < 0)
            return TP_CL_FAIL(status, "a device command", "event %u of the %u waited for", i,
                              count);
    }
    return TP_CL_FAIL(code, "clWaitForEvents", "%u events", count);
}

bool tp_event_is_done(tp_event *event)
{
    const tp_cl_api *cl = tp_cl_api_current();
    flush_queue_of(cl, (cl_event)event);
    return execution_status(cl, (cl_event)event) <= CL_COMPLETE;
}

tpucl_status tp_event_times(tp_event *event, uint64_t *out_start_ns, uint64_t *out_end_ns)
{
    const tp_cl_api *cl = tp_cl_api_current();
    cl_ulong start = 0, end = 0;
    TP_CL_TRY(cl->GetEventProfilingInfo((cl_event)event, CL_PROFILING_COMMAND_START, sizeof start,
                                        &start, NULL),
              "clGetEventProfilingInfo", "start of a command");
    TP_CL_TRY(cl->GetEventProfilingInfo((cl_event)event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                        NULL),
              "clGetEventProfilingInfo", "end of a command");
    *out_start_ns = start;
    *out_end_ns = end;
    return TPUCL_OK;
}
