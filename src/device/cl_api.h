/* SPDX-License-Identifier: Apache-2.0
 * The OpenCL entry points that tpucl uses, as one table of function pointers. The default table is
 * filled by loading the ICD loader at run time, so that the library builds, links and starts
 * without OpenCL; a missing loader is TPUCL_NO_DEVICE with a sentence. Tests put a table of their
 * own in its place (tests/harness/fake_cl.h); TPUCL_OPENCL_LIBRARY names another library to load
 * instead of libOpenCL.so.1.
 *
 * Private to src/device and the tests: no other layer sees an OpenCL type.
 * Threads: loading is safe from any thread. Replacing the table is not: do it before the first use.
 */
#ifndef TP_DEVICE_CL_API_H
#define TP_DEVICE_CL_API_H

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include "core/status.h"

/* X(name without "cl"): everything is OpenCL 1.2. */
#define TP_CL_ENTRY_LIST(X)                                                                        \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(CreateSubDevices)                                                                            \
    X(ReleaseDevice)                                                                               \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(GetCommandQueueInfo)                                                                         \
    X(ReleaseCommandQueue)                                                                         \
    X(Flush)                                                                                       \
    X(Finish)                                                                                      \
    X(CreateBuffer)                                                                                \
    X(CreateSubBuffer)                                                                             \
    X(ReleaseMemObject)                                                                            \
    X(EnqueueReadBuffer)                                                                           \
    X(EnqueueWriteBuffer)                                                                          \
    X(EnqueueCopyBuffer)                                                                           \
    X(EnqueueFillBuffer)                                                                           \
    X(EnqueueMapBuffer)                                                                            \
    X(EnqueueUnmapMemObject)                                                                       \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(CreateProgramWithSource)                                                                     \
    X(CreateProgramWithBinary)                                                                     \
    X(BuildProgram)                                                                                \
    X(GetProgramInfo)                                                                              \
    X(GetProgramBuildInfo)                                                                         \
    X(ReleaseProgram)                                                                              \
    X(CreateKernel)                                                                                \
    X(GetKernelInfo)                                                                               \
    X(GetKernelWorkGroupInfo)                                                                      \
    X(SetKernelArg)                                                                                \
    X(ReleaseKernel)                                                                               \
    X(EnqueueNDRangeKernel)                                                                        \
    X(WaitForEvents)                                                                               \
    X(GetEventInfo)                                                                                \
    X(GetEventProfilingInfo)                                                                       \
    X(RetainEvent)                                                                                 \
    X(ReleaseEvent)

typedef struct tp_cl_api {
#define TP_CL_API_FIELD(name) cl_api_cl##name name;
    TP_CL_ENTRY_LIST(TP_CL_API_FIELD)
#undef TP_CL_API_FIELD
} tp_cl_api;

/* Loads the default table unless one is there already. TPUCL_NO_DEVICE when there is no loader or
 * it lacks an entry point; the message names the library and what to install. */
tpucl_status tp_cl_api_load(void);

/* The table in use; NULL before tp_cl_api_load() succeeded. Borrowed. */
const tp_cl_api *tp_cl_api_current(void);

/* Puts `table` (borrowed, must outlive its use) in place; NULL goes back to the default one. */
void tp_cl_api_replace(const tp_cl_api *table);

/* Fills `out_table` from the library at `path`; the library stays loaded. For the default table and
 * for tests that forward to the real thing. */
tpucl_status tp_cl_api_open(const char *path, tp_cl_api *out_table);

#endif
