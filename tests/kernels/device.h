/* SPDX-License-Identifier: Apache-2.0
 * The device that kernel tests run on: what TPUCL_DEVICE selects, with guard zones and without a
 * disk cache of our own (a driver's may help). */
#ifndef TESTS_KERNELS_DEVICE_H
#define TESTS_KERNELS_DEVICE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include "device/device.h"

static inline tp_device *test_device_open(void)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device *device = NULL;
    const tp_device_options options = {.guard_zones = true};
    cr_assert(tp_device_list_create(&list) == TPUCL_OK);
    cr_assert(tp_device_list_select(list, NULL, &choice) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert(tp_device_open(list, choice.index, &options, &device) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    tp_device_list_destroy(list);
    return device;
}

#endif
