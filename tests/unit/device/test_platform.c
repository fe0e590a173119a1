/* SPDX-License-Identifier: Apache-2.0
 * Enumeration and selectors, on the real OpenCL and on broken ones. */
#include <stdio.h>
#include "device_test.h"
#include "harness/fake_cl.h"

static tp_device_list *make_list(void)
{
    tp_device_list *list;
    ASSERT_OK(tp_device_list_create(&list));
    return list;
}

/* True when one of the notes holds `part`. */
static bool has_note(const tp_device_list *list, const char *part)
{
    for (uint32_t i = 0; i < tp_device_list_note_count(list); i++)
        if (strstr(tp_device_list_note(list, i), part)) return true;
    return false;
}

static tp_device_list *list_with(const char *specification)
{
    fake_cl_install(specification);
    return make_list();
}

static tp_device_list *list_or_skip(void)
{
    tp_device_list *list = make_list();
    if (!tp_device_list_count(list)) {
        tp_device_list_destroy(list);
        cr_skip_test("no OpenCL device");
    }
    return list;
}

Test(platform, entries_are_filled_in)
{
    tp_device_list *list = list_or_skip();
    for (uint32_t i = 0; i < tp_device_list_count(list); i++) {
        const tp_device_entry *entry = tp_device_list_entry(list, i);
        char selector[32];
        snprintf(selector, sizeof selector, "%u:%u", entry->platform_index, entry->device_index);
        cr_assert_str_eq(entry->selector, selector);
        cr_assert(entry->usable || entry->reason[0]);
        cr_assert(entry->caps.name[0] && entry->caps.platform[0] && entry->caps.version[0]);
        cr_assert_gt(entry->caps.compute_units, 0);
        cr_assert_geq(entry->caps.base_address_align_bytes, 1);
        cr_assert_leq(entry->caps.base_address_align_bytes, 4096, "bytes, not bits");
        cr_assert_leq(entry->caps.max_allocation_bytes, entry->caps.memory_bytes);
    }
    cr_assert_null(tp_device_list_entry(list, tp_device_list_count(list)));
    tp_device_list_destroy(list);
}

/* B08: 0, 0:0, part of the name in any case, the type and the default all find the same device. */
Test(platform, selectors_agree)
{
    tp_device_list *list = list_or_skip();
    const tp_device_entry *entry = tp_device_list_entry(list, 0);
    char upper[64];
    snprintf(upper, sizeof upper, "%.20s", entry->caps.name);
    for (char *c = upper; *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    const char *const selectors[] = {"0", " 0 ", "0:0", upper, entry->caps.platform};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        tp_device_choice choice = {99, 99};
        ASSERT_OK(tp_device_list_select(list, selectors[i], &choice));
        cr_assert_eq(choice.index, 0, "selector '%s'", selectors[i]);
        cr_assert_eq(choice.split, 1);
    }
    tp_device_list_destroy(list);
}

Test(platform, split_suffix)
{
    tp_device_list *list = list_or_skip();
    tp_device_choice choice;
    ASSERT_OK(tp_device_list_select(list, "0:0/8", &choice));
    cr_assert_eq(choice.split, 8);
    ASSERT_OK(tp_device_list_select(list, "/2", &choice));
    cr_assert_eq(choice.split, 2);
    ASSERT_FAILS(tp_device_list_select(list, "0/0", &choice), TPUCL_INVALID_ARGUMENT,
                 "cannot split into 0");
    ASSERT_FAILS(tp_device_list_select(list, "0/5000", &choice), TPUCL_INVALID_ARGUMENT,
                 "1 to 2048");
    ASSERT_FAILS(tp_device_list_select(list, "a/b", &choice), TPUCL_NO_DEVICE,
                 "'a/b' matches no device");
    tp_device_list_destroy(list);
}

Test(platform, wrong_selectors_list_what_there_is)
{
    tp_device_list *list = list_or_skip();
    const char *name = tp_device_list_entry(list, 0)->caps.name;
    static const char *const selectors[] = {"99", "0:99", "7:0", "no such device", "99999999999"};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        tp_device_choice choice;
        ASSERT_FAILS(tp_device_list_select(list, selectors[i], &choice), TPUCL_NO_DEVICE, name);
        cr_assert(strstr(tpucl_last_error()->message, selectors[i]));
    }
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    tp_device_choice choice;
    ASSERT_FAILS(tp_device_list_select(list, longest, &choice), TPUCL_INVALID_ARGUMENT,
                 "299 characters");
    tp_device_list_destroy(list);
}

Test(platform, environment_is_the_default)
{
    setenv("TPUCL_DEVICE", "no such device", 1);
    tp_device_list *list = list_or_skip();
    tp_device_choice choice;
    ASSERT_FAILS(tp_device_list_select(list, NULL, &choice), TPUCL_NO_DEVICE, "'no such device'");
    ASSERT_OK(tp_device_list_select(list, "0", &choice)); /* a selector wins over the variable */
    tp_device_list_destroy(list);
}

Test(platform, select_all)
{
    tp_device_list *list = list_or_skip();
    uint32_t indices[64], count = 0, split = 0;
    cr_assert_lt(tp_device_list_count(list), 64);
    ASSERT_OK(tp_device_list_select_all(list, "o/2", indices, &count, &split));
    cr_assert_geq(count, 1);
    cr_assert_eq(split, 2);
    for (uint32_t i = 1; i < count; i++)
        cr_assert_lt(indices[i - 1], indices[i]);
    tp_device_list_destroy(list);
}

/* ---- B01 B02 B05 B06: broken, empty, missing ---- */

Test(platform, no_loader)
{
    setenv("TPUCL_OPENCL_LIBRARY", "/nowhere/libOpenCL.so.1", 1);
    tp_device_list *list = make_list();
    tp_device_choice choice;
    cr_assert_eq(tp_device_list_count(list), 0);
    cr_assert(has_note(list, "/nowhere/libOpenCL.so.1"));
    ASSERT_FAILS(tp_device_list_select(list, NULL, &choice), TPUCL_NO_DEVICE, "pocl-opencl-icd");
    tp_device_list_destroy(list);
}

Test(platform, no_platform_names_the_folder_searched)
{
    setenv("OCL_ICD_VENDORS", "/some/vendors", 1);
    static const char *const kinds[] = {"platforms=none", "platforms=zero"};
    for (int i = 0; i < 2; i++) {
        tp_device_list *list = list_with(kinds[i]);
        tp_device_choice choice;
        cr_assert_eq(tp_device_list_count(list), 0);
        cr_assert_eq(tp_device_list_note_count(list), 1);
        ASSERT_FAILS(tp_device_list_select(list, "0", &choice), TPUCL_NO_DEVICE,
                     "'/some/vendors' (OCL_ICD_VENDORS)");
        tp_device_list_destroy(list);
    }
}

/* The real loader with a folder that has no drivers. */
Test(platform, empty_vendor_folder)
{
    setenv("OCL_ICD_VENDORS", TPUCL_SOURCE_DIR "/cmake/", 1);
    tp_device_list *list = make_list();
    tp_device_choice choice;
    cr_assert_eq(tp_device_list_count(list), 0);
    ASSERT_FAILS(tp_device_list_select(list, "gpu", &choice), TPUCL_NO_DEVICE,
                 TPUCL_SOURCE_DIR "/cmake/");
    tp_device_list_destroy(list);
}

/* An odd platform in front changes neither the numbers nor the names of the good ones. */
Test(platform, odd_platforms_are_skipped_with_a_note)
{
    tp_device_list *real = list_or_skip();
    static const char *const kinds[][2] = {
        {"platforms=empty", "'A Misbehaving Platform' has no devices"},
        {"platforms=broken",
         "'A Misbehaving Platform' failed to list its devices with CL_OUT_OF_HOST_MEMORY (-6)"},
        {"platforms=nameless", "platform number 0 does not answer"}};
    for (int i = 0; i < 3; i++) {
        tp_device_list *list = list_with(kinds[i][0]);
        cr_assert(has_note(list, kinds[i][1]), "%s", kinds[i][0]);
        cr_assert_eq(tp_device_list_count(list), tp_device_list_count(real));
        for (uint32_t j = 0; j < tp_device_list_count(real); j++)
            cr_assert_str_eq(tp_device_list_entry(list, j)->selector,
                             tp_device_list_entry(real, j)->selector);
        tp_device_list_destroy(list);
    }
    tp_device_list_destroy(real);
}

Test(platform, silent_devices_are_listed_as_unusable)
{
    tp_device_list *list = list_with("devices=broken");
    if (!tp_device_list_count(list)) cr_skip_test("no OpenCL device");
    tp_device_choice choice;
    tp_device *device;
    cr_assert_not(tp_device_list_entry(list, 0)->usable);
    cr_assert(strstr(tp_device_list_entry(list, 0)->reason, "does not answer"));
    ASSERT_FAILS(tp_device_list_select(list, "0", &choice), TPUCL_NO_DEVICE, "not usable");
    ASSERT_FAILS(tp_device_list_select(list, NULL, &choice), TPUCL_NO_DEVICE,
                 "no usable OpenCL device");
    ASSERT_FAILS(tp_device_open(list, 0, NULL, &device), TPUCL_NO_DEVICE, "not usable");
    cr_assert_null(device);
    tp_device_list_destroy(list);
}

Test(platform, old_and_odd_versions_are_unusable)
{
    static const char *const kinds[][2] = {
        {"version=OpenCL 1.1 Mesa", "it has OpenCL 1.1, tpucl needs 1.2"},
        {"version=Vulkan 1.3", "its version reads 'Vulkan 1.3', "
                               "expected 'OpenCL <major>.<minor> ...'"}};
    for (int i = 0; i < 2; i++) {
        tp_device_list *list = list_with(kinds[i][0]);
        if (!tp_device_list_count(list)) cr_skip_test("no OpenCL device");
        cr_assert_not(tp_device_list_entry(list, 0)->usable);
        cr_assert_str_eq(tp_device_list_entry(list, 0)->reason, kinds[i][1]);
        tp_device_list_destroy(list);
    }
}

/* B11: the driver's unit is bits. */
Test(platform, alignment_is_in_bytes)
{
    static const uint32_t bits[] = {1024, 2048, 4096};
    for (int i = 0; i < 3; i++) {
        char specification[32];
        snprintf(specification, sizeof specification, "align_bits=%u", bits[i]);
        tp_device_list *list = list_with(specification);
        if (!tp_device_list_count(list)) cr_skip_test("no OpenCL device");
        cr_assert_eq(tp_device_list_entry(list, 0)->caps.base_address_align_bytes, bits[i] / 8);
        tp_device_list_destroy(list);
    }
}
