/* SPDX-License-Identifier: Apache-2.0
 * One table: code, what it means here, status. Codes and names are those of the OpenCL 3.0
 * specification, section "CL Error codes", and of cl_khr_icd (-1001). */
#include "device/cl_error.h"

#include <CL/cl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* From cl_khr_icd; in CL/cl_ext.h, which we need for nothing else. */
#define PLATFORM_NOT_FOUND_KHR (-1001)

typedef struct cl_error_row {
    int32_t code;
    const char *name;
    tpucl_status status;
    const char *hint;
} cl_error_row;

#define ROW(name, status, hint)                                                                    \
    {                                                                                              \
        name, #name, TPUCL_##status, hint                                                          \
    }

static const cl_error_row rows[] = {
    ROW(CL_DEVICE_NOT_FOUND, NO_DEVICE, "the platform has no such device"),
    ROW(CL_DEVICE_NOT_AVAILABLE, NO_DEVICE, "another program holds the device, or it was lost"),
    ROW(CL_COMPILER_NOT_AVAILABLE, DEVICE_ERROR, "the driver has no compiler"),
    ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_DEVICE_MEMORY,
        "the device's memory is full or in pieces: use a smaller batch, or close other programs "
        "that use it"),
    ROW(CL_OUT_OF_RESOURCES, OUT_OF_DEVICE_MEMORY,
        "the device ran out of memory or registers, or a kernel was stopped by the driver"),
    ROW(CL_OUT_OF_HOST_MEMORY, OUT_OF_MEMORY, "the driver could not get host memory"),
    ROW(CL_PROFILING_INFO_NOT_AVAILABLE, DEVICE_ERROR,
        "the device was opened without profiling, or the command is not finished"),
    ROW(CL_MEM_COPY_OVERLAP, DEVICE_ERROR, ""),
    ROW(CL_BUILD_PROGRAM_FAILURE, DEVICE_ERROR, ""),
    ROW(CL_MAP_FAILURE, DEVICE_ERROR, ""),
    ROW(CL_MISALIGNED_SUB_BUFFER_OFFSET, DEVICE_ERROR, ""),
    ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, DEVICE_ERROR,
        "a command that this one waits for failed earlier"),
    ROW(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, DEVICE_ERROR, ""),
    ROW(CL_DEVICE_PARTITION_FAILED, UNSUPPORTED, "the device cannot be split that way"),
    ROW(CL_INVALID_VALUE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_DEVICE_TYPE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_PLATFORM, NO_DEVICE, "the platform's driver is broken or gone"),
    ROW(CL_INVALID_DEVICE, NO_DEVICE, "the device is gone"),
    ROW(CL_INVALID_CONTEXT, DEVICE_ERROR, ""),
    ROW(CL_INVALID_QUEUE_PROPERTIES, DEVICE_ERROR, ""),
    ROW(CL_INVALID_COMMAND_QUEUE, DEVICE_ERROR,
        "after a crash in a kernel drivers answer like this"),
    ROW(CL_INVALID_MEM_OBJECT, DEVICE_ERROR, ""),
    ROW(CL_INVALID_BINARY, DEVICE_ERROR, "a stored program does not fit this driver"),
    ROW(CL_INVALID_BUILD_OPTIONS, DEVICE_ERROR,
        "the driver's compiler does not know one of the options"),
    ROW(CL_INVALID_PROGRAM, DEVICE_ERROR, ""),
    ROW(CL_INVALID_PROGRAM_EXECUTABLE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_KERNEL_NAME, NOT_FOUND, "the program has no kernel of that name"),
    ROW(CL_INVALID_KERNEL_DEFINITION, DEVICE_ERROR, ""),
    ROW(CL_INVALID_KERNEL, DEVICE_ERROR, ""),
    ROW(CL_INVALID_ARG_INDEX, DEVICE_ERROR, "the kernel has fewer arguments"),
    ROW(CL_INVALID_ARG_VALUE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_ARG_SIZE, DEVICE_ERROR, "the argument has another type in the kernel"),
    ROW(CL_INVALID_KERNEL_ARGS, DEVICE_ERROR, "an argument was not set"),
    ROW(CL_INVALID_WORK_DIMENSION, DEVICE_ERROR, ""),
    ROW(CL_INVALID_WORK_GROUP_SIZE, DEVICE_ERROR,
        "the work-group is too large for this kernel or device"),
    ROW(CL_INVALID_WORK_ITEM_SIZE, DEVICE_ERROR, "the work-group is too long in one direction"),
    ROW(CL_INVALID_GLOBAL_OFFSET, DEVICE_ERROR, ""),
    ROW(CL_INVALID_EVENT_WAIT_LIST, DEVICE_ERROR, "an event of another device"),
    ROW(CL_INVALID_EVENT, DEVICE_ERROR, ""),
    ROW(CL_INVALID_OPERATION, DEVICE_ERROR, ""),
    ROW(CL_INVALID_BUFFER_SIZE, OUT_OF_DEVICE_MEMORY, "larger than the largest single allocation"),
    ROW(CL_INVALID_GLOBAL_WORK_SIZE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_PROPERTY, DEVICE_ERROR, ""),
    ROW(CL_INVALID_DEVICE_PARTITION_COUNT, UNSUPPORTED,
        "the device has too few compute units for that"),
    ROW(CL_BUILD_NONE, DEVICE_ERROR, ""),
    ROW(CL_BUILD_ERROR, DEVICE_ERROR, ""),
    ROW(CL_BUILD_IN_PROGRESS, DEVICE_ERROR, ""),
    ROW(CL_IMAGE_FORMAT_MISMATCH, DEVICE_ERROR, ""),
    ROW(CL_IMAGE_FORMAT_NOT_SUPPORTED, DEVICE_ERROR, ""),
    ROW(CL_COMPILE_PROGRAM_FAILURE, DEVICE_ERROR, ""),
    ROW(CL_LINKER_NOT_AVAILABLE, DEVICE_ERROR, ""),
    ROW(CL_LINK_PROGRAM_FAILURE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_HOST_PTR, DEVICE_ERROR, ""),
    ROW(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, DEVICE_ERROR, ""),
    ROW(CL_INVALID_IMAGE_SIZE, DEVICE_ERROR, ""),
    ROW(CL_INVALID_SAMPLER, DEVICE_ERROR, ""),
    ROW(CL_INVALID_GL_OBJECT, DEVICE_ERROR, ""),
    ROW(CL_INVALID_MIP_LEVEL, DEVICE_ERROR, ""),
    ROW(CL_INVALID_IMAGE_DESCRIPTOR, DEVICE_ERROR, ""),
    ROW(CL_INVALID_COMPILER_OPTIONS, DEVICE_ERROR, ""),
    ROW(CL_INVALID_LINKER_OPTIONS, DEVICE_ERROR, ""),
    {PLATFORM_NOT_FOUND_KHR, "CL_PLATFORM_NOT_FOUND_KHR", TPUCL_NO_DEVICE,
     "the loader found no driver"},
};

static const cl_error_row *find_row(int32_t code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code) return &rows[i];
    return NULL;
}

const char *tp_cl_error_name(int32_t code)
{
    const cl_error_row *row = find_row(code);
    return row ? row->name : "an unknown OpenCL error";
}

const char *tp_cl_error_hint(int32_t code)
{
    const cl_error_row *row = find_row(code);
    return row ? row->hint : "";
}

tpucl_status tp_cl_error_status(int32_t code)
{
    const cl_error_row *row = find_row(code);
    return row ? row->status : TPUCL_DEVICE_ERROR;
}

tpucl_status tp_cl_error_set(int32_t code, const char *call, const char *function, const char *file,
                             int line, const char *format, ...)
{
    char detail[1600]; /* leaves room for the rest in the record's message */
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    const char *hint = tp_cl_error_hint(code);
    if (code == CL_SUCCESS) /* a call that gave no object and no reason */
        return tp_error_set(TPUCL_DEVICE_ERROR, code, function, file, line,
                            "%s gave nothing and reported success: %s; the driver is broken", call,
                            detail);
    return tp_error_set(tp_cl_error_status(code), code, function, file, line,
                        "%s failed with %s (%d): %s%s%s", call, tp_cl_error_name(code), (int)code,
                        detail, hint[0] ? "; " : "", hint);
}
