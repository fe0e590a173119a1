/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "device/caps.h"
#include "device/quirks.h"

static tp_quirks find(const char *platform, const char *name)
{
    tp_device_caps caps = {0};
    tp_quirks quirks;
    snprintf(caps.platform, sizeof caps.platform, "%s", platform);
    snprintf(caps.name, sizeof caps.name, "%s", name);
    tp_quirks_find(&caps, &quirks);
    return quirks;
}

Test(quirks, an_unknown_device_has_none)
{
    const tp_quirks quirks = find("Some New Platform", "Fast GPU");
    cr_assert_eq(quirks.effects, 0);
    cr_assert_str_eq(quirks.reasons, "");
    cr_assert_str_eq(quirks.build_options, "");
}

Test(quirks, clover_is_skipped_with_a_reason)
{
    const tp_quirks quirks = find("Clover", "AMD POLARIS10");
    cr_assert(quirks.effects & TP_QUIRK_SKIP);
    cr_assert(strstr(quirks.reasons, "OpenCL 1.1"));
}

Test(quirks, rows_add_up)
{
    const tp_quirks quirks = find("Oclgrind", "Oclgrind Simulator");
    cr_assert(quirks.effects & TP_QUIRK_NOT_DEFAULT);
    cr_assert(quirks.effects & TP_QUIRK_ONE_LANE);
    cr_assert_str_eq(quirks.build_options, " -Drestrict= -cl-opt-disable");
    cr_assert(strstr(quirks.reasons, "; "), "two reasons: %s", quirks.reasons);
}

Test(quirks, pocl_has_one_compiler_and_basic_cannot_be_split)
{
    const char *pocl = "Portable Computing Language";
    cr_assert_eq(find(pocl, "pthread-skylake").effects, (unsigned)TP_QUIRK_ONE_COMPILER);
    cr_assert_eq(find(pocl, "basic-skylake").effects,
                 (unsigned)(TP_QUIRK_ONE_COMPILER | TP_QUIRK_NO_SUB_DEVICES));
}

static tp_matrix_unit unit_of(const char *vendor, const char *name, const char *extensions,
                              uint32_t capability, uint32_t subgroups)
{
    return tp_caps_matrix_unit(&(tp_unit_signs){vendor, name, extensions, capability, subgroups});
}

Test(quirks, matrix_units_are_told_by_vendor_and_generation)
{
    const char *nv = "cl_khr_fp64 cl_nv_device_attribute_query cl_nv_compiler_options";
    const char *dpas = "cl_khr_fp64 cl_intel_subgroup_matrix_multiply_accumulate";
    const char *tf32 = "cl_intel_subgroup_matrix_multiply_accumulate_tf32",
               *arc = "Intel(R) Arc(TM)";
    const char *intel = "Intel(R) Corporation", *amd = "Advanced Micro Devices, Inc.";
    cr_assert_eq(unit_of("NVIDIA Corporation", "H200", nv, 9, 0), TP_MATRIX_UNIT_NVIDIA);
    cr_assert_eq(unit_of("NVIDIA Corporation", "A100", nv, 8, 0), TP_MATRIX_UNIT_NVIDIA);
    cr_assert_eq(unit_of("NVIDIA Corporation", "T4", nv, 7, 0), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of("NVIDIA Corporation", "H200", "cl_khr_fp64", 9, 0), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of("Mesa, for NVIDIA", "H200", nv, 9, 0), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of(intel, arc, nv, 0, 16), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of(intel, arc, tf32, 0, 16), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of(intel, arc, dpas, 0, 16 + 32), TP_MATRIX_UNIT_INTEL_16);
    cr_assert_eq(unit_of(intel, arc, dpas, 0, 8 + 16 + 32), TP_MATRIX_UNIT_INTEL_8);
    cr_assert_eq(unit_of(intel, arc, dpas, 0, 0), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of(amd, "gfx90a:sramecc+:xnack-", "", 0, 0), TP_MATRIX_UNIT_MFMA);
    cr_assert_eq(unit_of(amd, "gfx942", "", 0, 0), TP_MATRIX_UNIT_MFMA);
    cr_assert_eq(unit_of(amd, "gfx908", "", 0, 0), TP_MATRIX_UNIT_NONE);
    cr_assert_eq(unit_of(amd, "gfx1100", "", 0, 0), TP_MATRIX_UNIT_WMMA_GFX11);
    cr_assert_eq(unit_of(amd, "gfx1201", "", 0, 0), TP_MATRIX_UNIT_WMMA_GFX12);
    cr_assert_eq(unit_of("Mesa", "gfx1100", "", 0, 0), TP_MATRIX_UNIT_NONE);
}

Test(caps, extension_names_are_whole_words)
{
    cr_assert(tp_caps_has_word("cl_khr_fp16 cl_khr_fp64", "cl_khr_fp64"));
    cr_assert(tp_caps_has_word("cl_khr_fp16", "cl_khr_fp16"));
    cr_assert_not(tp_caps_has_word("cl_khr_fp16_more", "cl_khr_fp16"));
    cr_assert_not(tp_caps_has_word("x_cl_khr_fp16", "cl_khr_fp16"));
    cr_assert(tp_caps_has_word("cl_khr_fp16_more cl_khr_fp16", "cl_khr_fp16"),
              "a longer one before it");
    cr_assert_not(tp_caps_has_word("", "cl_khr_fp16"));
}

Test(caps, versions)
{
    int major = 0, minor = 0;
    cr_assert(tp_caps_parse_version("OpenCL 3.0 PoCL HSTR: pthread", &major, &minor));
    cr_assert(major == 3 && minor == 0);
    cr_assert(tp_caps_parse_version("OpenCL C 1.2 ", &major, &minor));
    cr_assert(major == 1 && minor == 2);
    cr_assert_not(tp_caps_parse_version("CUDA 12.2", &major, &minor));
    cr_assert_not(tp_caps_parse_version("", &major, &minor));
}
