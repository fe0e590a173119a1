/* SPDX-License-Identifier: Apache-2.0
 * An opened OpenCL device (or one of the equal sub-devices of one): a context of its own and three
 * in-order lanes. Commands on one lane run in the order of the calls; order between lanes exists
 * only where a command waits for another one's event. On some drivers all lanes are one queue,
 * which never breaks a correct use.
 *
 * Threads. A device may be used from many threads: creating and releasing buffers, programs and
 * kernels, and enqueuing on different lanes, are safe in parallel. Two threads that enqueue on the
 * SAME lane get some order, so keep each lane to one thread at a time (the executor's stepping
 * thread owns compute and download, the infeed thread upload). A tp_device_kernel belongs to one
 * thread at a time.
 *
 * Lifetime. Devices, buffers and programs are reference-counted; buffers, programs and kernels keep
 * their device alive. Closing waits for outstanding work.
 */
#ifndef TP_DEVICE_DEVICE_H
#define TP_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/status.h"
#include "device/platform.h"
#include "device/program_cache.h"
#include "topo/device_caps.h"

typedef struct tp_device tp_device;
typedef struct tp_event tp_event;

typedef enum tp_lane { TP_LANE_COMPUTE, TP_LANE_UPLOAD, TP_LANE_DOWNLOAD, TP_LANE_COUNT } tp_lane;

typedef struct tp_device_options {
    bool synchronous; /* finish the lane after every command: same bits, slower, for tests */
    bool profiling;   /* events carry device times */
    bool guard_zones; /* watch the bytes around every buffer, see buffer.h */
    bool one_lane;    /* all lanes share one queue */
    uint64_t memory_limit_bytes; /* 0: what the device reports */
    tp_program_cache *cache;     /* borrowed, must outlive the device; NULL: no disk cache */
} tp_device_options;

/* Opens entry `index` of the list; `options` NULL means all defaults. TPUCL_NO_DEVICE when the
 * entry is not usable. The list may be destroyed afterwards. */
tpucl_status tp_device_open(const tp_device_list *list, uint32_t index,
                            const tp_device_options *options, tp_device **out_device);

/* Opens entry `index` as `split` equal sub-devices; out_devices has room for `split` pointers, all
 * of which are set or none. TPUCL_UNSUPPORTED when the device has too few compute units or cannot
 * be split: the message has both numbers and says how to get more. Each sub-device reports its
 * share of the parent's memory. split 1 opens the whole device. */
tpucl_status tp_device_open_split(const tp_device_list *list, uint32_t index, uint32_t split,
                                  const tp_device_options *options, tp_device **out_devices);

/* Waits for all lanes and drops the caller's reference. NULL is fine. */
void tp_device_close(tp_device *device);

/* Both borrowed, valid while the device is open. The label is "0:1" or "0:1/8#3" for sub-device 3
 * of 8. */
const tp_device_caps *tp_device_get_caps(const tp_device *device);
const char *tp_device_label(const tp_device *device);

/* What a cached verdict or binary depends on: name, driver, version, platform; one line. Borrowed.
 * Equal for sub-devices of the same size of one device. */
const char *tp_device_identity(const tp_device *device);

/* Bytes in buffers now and at most so far, guard zones not counted, and what may be allocated in
 * total. */
typedef struct tp_device_memory {
    uint64_t used_bytes, peak_bytes, limit_bytes;
} tp_device_memory;
void tp_device_get_memory(const tp_device *device, tp_device_memory *out_memory);

/* Switches `synchronous` on a device that is open (the bit-for-bit comparison of both ways uses
 * it). */
void tp_device_set_synchronous(tp_device *device, bool synchronous);

/* Sends what is enqueued to the device / waits until it is done. */
tpucl_status tp_lane_flush(tp_device *device, tp_lane lane);
tpucl_status tp_lane_finish(tp_device *device, tp_lane lane);
tpucl_status tp_device_finish(tp_device *device);

/* Makes everything enqueued on `lane` from now on wait for `events`; costs no host wait. */
tpucl_status tp_lane_wait(tp_device *device, tp_lane lane, tp_event *const *events, uint32_t count);

/* An event that completes when everything enqueued on `lane` so far has. Caller releases. */
tpucl_status tp_lane_mark(tp_device *device, tp_lane lane, tp_event **out_event);

/* Raw handles for ext/opencl.h: cl_context, cl_device_id, cl_command_queue as void *. Borrowed. */
void *tp_device_native_context(const tp_device *device);
void *tp_device_native_id(const tp_device *device);
void *tp_device_native_queue(const tp_device *device, tp_lane lane);

/* Events come from enqueuing calls; the caller releases each one it asked for. NULL is fine to
 * release. An event belongs to the device it came from: waiting for it on another device's lane is
 * not possible. */
void tp_event_release(tp_event *event);
/* The same event with one more reference to release; NULL when there is none or the driver fails.
 * */
tp_event *tp_event_retain(tp_event *event);

/* Blocks until all are done. TPUCL_DEVICE_ERROR when one of the commands failed. */
tpucl_status tp_event_wait(tp_event *const *events, uint32_t count);

/* True when the command is done or failed (then tp_event_wait tells). */
bool tp_event_is_done(tp_event *event);

/* Start and end on the device's clock; needs the device's `profiling` and a finished command. */
tpucl_status tp_event_times(tp_event *event, uint64_t *out_start_ns, uint64_t *out_end_ns);

#endif
