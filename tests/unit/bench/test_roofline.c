/* SPDX-License-Identifier: Apache-2.0
 * That the roofline's arithmetic is right and its probes do what they say; how fast is nobody's business here. */
#include <criterion/criterion.h>
#include "bench/host_probe.h"
#include "bench/roofline.h"

Test(roofline, takes_the_longer_of_computing_and_moving)
{
    const tp_roofline r = {
        .multiply_add_flops = 100, .pair_flops = 200, .copy_bytes = 10, .driver_copy_bytes = 8};
    cr_assert_eq(tp_roofline_seconds(&r, 1000, 10, false), 10.0);
    cr_assert_eq(tp_roofline_seconds(&r, 1000, 10, true), 5.0);
    cr_assert_eq(tp_roofline_seconds(&r, 10, 1000, true), 100.0);
    const tp_roofline fast_driver = {
        .multiply_add_flops = 100, .copy_bytes = 10, .driver_copy_bytes = 20};
    cr_assert_eq(tp_roofline_seconds(&fast_driver, 1000, 1000, true), 50.0);
}

Test(roofline, probes_of_a_device_check_themselves)
{
    tp_device_list *list = NULL;
    tp_device_choice choice;
    tp_device *device = NULL;
    tp_roofline r;
    cr_assert_eq(tp_device_list_create(&list), TPUCL_OK);
    cr_assert_eq(tp_device_list_select(list, NULL, &choice), TPUCL_OK);
    cr_assert_eq(tp_device_open(list, choice.index, NULL, &device), TPUCL_OK);
    tp_device_list_destroy(list);
    cr_assert_eq(tp_roofline_measure(device, true, &r), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    cr_assert_gt(r.multiply_add_flops, 0);
    cr_assert_eq(r.pair_flops > 0, tp_device_get_caps(device)->has_bf16_pairs);
    cr_assert_gt(r.copy_bytes, 0);
    cr_assert_gt(r.triad_bytes, 0);
    cr_assert_gt(r.driver_copy_bytes, 0);
    cr_assert_gt(r.cached_copy_bytes, 0);
    tp_device_close(device);
}

Test(host_probe, all_check_themselves)
{
    static const tp_host_probe probes[] = {TP_HOST_MULTIPLY_ADDS, TP_HOST_PAIRS, TP_HOST_COPY,
                                           TP_HOST_TRIAD};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        double rate = 0;
        if (!tp_host_probe_is_available(probes[i])) continue;
        cr_assert_eq(tp_host_probe_run(probes[i], 1 << 20, 1, &rate), TPUCL_OK, "%s",
                     tpucl_last_error()->message);
        cr_assert_gt(rate, 0);
    }
}
