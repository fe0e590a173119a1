/* SPDX-License-Identifier: Apache-2.0
 * What the device tests share: opening the default device, small kernels, and skipping where there
 * is none. */
#ifndef TPUCL_TESTS_DEVICE_TEST_H
#define TPUCL_TESTS_DEVICE_TEST_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "device/buffer.h"
#include "device/device.h"
#include "device/launch.h"
#include "device/program_build.h"

#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        const tpucl_status assert_status_ = (call);                                                \
        cr_assert_eq(assert_status_, TPUCL_OK, "%s: %s", #call, tpucl_last_error()->message);      \
    } while (0)

/* Fails with `status`, and the message holds `part`. */
#define ASSERT_FAILS(call, status, part)                                                           \
    do {                                                                                           \
        const tpucl_status assert_status_ = (call);                                                \
        cr_assert_eq(assert_status_, (status), "%s gave %s", #call,                                \
                     tpucl_status_name(assert_status_));                                           \
        cr_assert(strstr(tpucl_last_error()->message, (part)), "message: %s",                      \
                  tpucl_last_error()->message);                                                    \
    } while (0)

/* The default device, or the test is skipped. */
static inline tp_device *open_default(const tp_device_options *options)
{
    tp_device_list *list;
    tp_device_choice choice;
    tp_device *device = NULL;
    ASSERT_OK(tp_device_list_create(&list));
    if (tp_device_list_select(list, NULL, &choice) != TPUCL_OK) {
        tp_device_list_destroy(list);
        cr_skip_test("no OpenCL device");
    }
    ASSERT_OK(tp_device_open(list, choice.index, options, &device));
    tp_device_list_destroy(list);
    return device;
}

/* Of the default device; false when there is none. */
static inline bool has_quirk(unsigned effect)
{
    tp_device_list *list;
    tp_device_choice choice;
    ASSERT_OK(tp_device_list_create(&list));
    const bool found = tp_device_list_select(list, NULL, &choice) == TPUCL_OK;
    const bool has =
        found && (tp_device_list_entry(list, choice.index)->quirks.effects & effect) != 0;
    tp_device_list_destroy(list);
    return has;
}

/* dst[i] = src[i] * factor + offset, one work-item each; dst[n] is written too when `overrun` is
 * set. */
static const char scale_source[] =
    "__kernel void scale(__global float *dst, __global const float *src, float factor, float "
    "offset,\n"
    "                    uint n, uint overrun)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) dst[i] = src[i] * factor + offset;\n"
    "    if (overrun && i == 0) { dst[n] = 1.0f; dst[-1] = 1.0f; }\n"
    "}\n"
    "__kernel void count_up(__global uint *cell) { cell[get_global_id(0)]++; }\n"
    "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void eights(__global uint *cell)\n"
    "{ cell[get_global_id(0)] = 8; }\n";

static inline tp_device_program *build_scale(tp_device *device)
{
    tp_device_program *program = NULL;
    const tp_device_program_source source = {.label = "scale", .source = scale_source};
    ASSERT_OK(tp_device_program_build(device, &source, &program));
    return program;
}

static inline void set_scale_args(tp_device_kernel *kernel, tp_buffer *dst, tp_buffer *src,
                                  float factor, float offset, uint32_t n, uint32_t overrun)
{
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 0, dst));
    ASSERT_OK(tp_device_kernel_set_buffer(kernel, 1, src));
    ASSERT_OK(tp_device_kernel_set_bytes(kernel, 2, &factor, sizeof factor));
    ASSERT_OK(tp_device_kernel_set_bytes(kernel, 3, &offset, sizeof offset));
    ASSERT_OK(tp_device_kernel_set_bytes(kernel, 4, &n, sizeof n));
    ASSERT_OK(tp_device_kernel_set_bytes(kernel, 5, &overrun, sizeof overrun));
}

#endif
