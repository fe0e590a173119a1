/* SPDX-License-Identifier: Apache-2.0
 * Every MXU variant against the contract, bit for bit, on the list of kernel/mxu_cases.h, with
 * guard zones around every buffer and between the cores' parts of it. TPUCL_TEST_CASE=text runs
 * only the cases whose name contains the text; TPUCL_TEST_SHORT=1 leaves out the long ones
 * (Oclgrind).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/device.h"
#include "tune/mxu_check.h"

/* All cases by `variant` as planned for `caps` (NULL: the device's own); `least` guards against a
 * list that shrank unnoticed. */
static void check(const char *variant, tp_device *device, const tp_device_caps *caps, size_t least)
{
    size_t count = 0, passed = 0, wrong = 0;
    const char *only = getenv("TPUCL_TEST_CASE");
    const tp_mxu_case *rows = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        tp_mxu_verdict verdict;
        char text[256];
        if (only != NULL && strstr(rows[i].name, only) == NULL) continue;
        if (rows[i].is_long && getenv("TPUCL_TEST_SHORT") != NULL) continue;
        cr_assert(tp_mxu_check(device, caps == NULL ? tp_device_get_caps(device) : caps, &rows[i],
                               variant, &verdict, text) == TPUCL_OK,
                  "%s", tpucl_last_error()->message);
        passed += verdict == TP_MXU_PASSED || verdict == TP_MXU_CLOSE;
        if (verdict != TP_MXU_WRONG) continue;
        cr_log_error("%s, case '%s': %s", variant, rows[i].name, text);
        wrong++;
    }
    tp_device_close(device);
    cr_expect(wrong == 0, "%s: %zu cases are wrong", variant, wrong);
    const bool is_whole = only == NULL && getenv("TPUCL_TEST_SHORT") == NULL;
    cr_expect(!is_whole || passed >= least, "%s passed only %zu cases", variant, passed);
}

Test(mxu, reference)
{
    check("mxu_reference", test_device_open(), NULL, 80);
}

Test(mxu, direct)
{
    check("mxu_direct", test_device_open(), NULL, 80);
}

Test(mxu, register_tile)
{
    check("mxu_register", test_device_open(), NULL, 80);
}

/* In pairs of bf16: by the instruction where the device has it, and by plain steps everywhere. */
Test(mxu, pairs)
{
    check("mxu_pairs", test_device_open(), NULL, 60);
}

Test(mxu, pairs_by_steps)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.has_bf16_pairs = false;
    check("mxu_pairs", device, &caps, 60);
}

/* Operands that run along the result. */
Test(mxu, outer)
{
    check("mxu_outer", test_device_open(), NULL, 12);
}

Test(mxu, outer_by_steps)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.has_bf16_pairs = false;
    check("mxu_outer", device, &caps, 12);
}

/* Sums over cores; what no case of its kind proves is never used (verify/verdicts.c). */
Test(mxu, outer_cores)
{
    check("mxu_outer_cores", test_device_open(), NULL, 7);
}

Test(mxu, outer_cores_by_steps)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.has_bf16_pairs = false;
    check("mxu_outer_cores", device, &caps, 7);
}

Test(mxu, each_kind_of_sum_over_cores_is_proven)
{
    size_t count = 0, dots = 0, filter_grads = 0;
    tp_device *device = test_device_open();
    const tp_mxu_case *rows = tp_mxu_cases(&count);
    for (size_t i = 0; i < count; i++) {
        tp_mxu_verdict verdict;
        char text[256];
        if (!rows[i].sums_cores || rows[i].precision != TP_PRECISION_DEFAULT) continue;
        cr_assert(tp_mxu_check(device, tp_device_get_caps(device), &rows[i], "mxu_outer_cores",
                               &verdict, text) == TPUCL_OK);
        dots += verdict == TP_MXU_PASSED && rows[i].kind == TP_MXU_DOT;
        filter_grads += verdict == TP_MXU_PASSED && rows[i].kind == TP_MXU_CONV_FILTER_GRAD;
    }
    tp_device_close(device);
    cr_expect(dots > 0 && filter_grads > 0);
}

/* All but the instruction: fragments, edges, kinds of products, epilogues. */
static void check_unit(tp_matrix_unit unit)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.matrix_unit = unit;
    caps.matrix_unit_is_emulated = true;
    check("mxu_matrix", device, &caps, 25);
}

Test(mxu, matrix_unit_emulated)
{
    check_unit(TP_MATRIX_UNIT_NVIDIA);
}

Test(mxu, matrix_unit_intel_emulated)
{
    check_unit(TP_MATRIX_UNIT_INTEL_16);
    check_unit(TP_MATRIX_UNIT_INTEL_8);
}

Test(mxu, matrix_unit_amd_emulated)
{
    check_unit(TP_MATRIX_UNIT_MFMA);
    check_unit(TP_MATRIX_UNIT_WMMA_GFX11);
    check_unit(TP_MATRIX_UNIT_WMMA_GFX12);
}

/* A unit with one wrong sign in one lane is noticed: kernels from a folder, spoilt there. */
Test(mxu, a_wrong_matrix_unit_is_noticed)
{
    char folder[] = "/tmp/tpucl_kernels_XXXXXX", command[512];
    size_t count = 0, wrong = 0;
    const tp_mxu_case *rows = tp_mxu_cases(&count);
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(command, sizeof command,
             "cp -r '%s/kernels/.' '%s' && "
             "sed -i 's/^#define MATRIX_UNIT_IS_WRONG 0/#define MATRIX_UNIT_IS_WRONG 1/' "
             "'%s/mxu/matrix_unit.clh'",
             TPUCL_SOURCE_DIR, folder, folder);
    cr_assert_eq(system(command), 0);
    setenv("TPUCL_KERNEL_DIR", folder, 1);
    tp_device *device = test_device_open();
    for (size_t i = 0; i < count && wrong < 4; i++) { /* results of 13 x 3 and more have the lane */
        tp_mxu_verdict verdict;
        char text[256];
        if (rows[i].is_long) continue;
        cr_assert(tp_mxu_check(device, tp_device_get_caps(device), &rows[i], "mxu_matrix", &verdict,
                               text) == TPUCL_OK);
        wrong += verdict == TP_MXU_WRONG;
    }
    tp_device_close(device);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
    cr_expect(wrong == 4, "%zu cases noticed it", wrong);
}

/* All but the exchange between work-items. */
Test(mxu, subgroup_emulated)
{
    check("mxu_subgroup", test_device_open(), NULL, 80);
}

Test(mxu, local_tile)
{
    check("mxu_local", test_device_open(), NULL, 80);
}

/* The register tile as other devices get it: 8 and 4 floats per vector, local memory too small for
 * a panel. */
Test(mxu, register_tile_of_8)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.preferred_float_vector = 8;
    caps.local_memory_bytes = 16384;
    check("mxu_register", device, &caps, 80);
}

Test(mxu, register_tile_of_4)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.preferred_float_vector = 4;
    check("mxu_register", device, &caps, 80);
}

/* The direct variant as a GPU gets it: one column per work-item. */
Test(mxu, direct_by_scalars)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.preferred_float_vector = 1;
    check("mxu_direct", device, &caps, 80);
}

Test(mxu, grouped)
{
    check("mxu_grouped", test_device_open(), NULL, 25);
}

Test(mxu, grouped_by_scalars)
{
    tp_device *device = test_device_open();
    tp_device_caps caps = *tp_device_get_caps(device);
    caps.preferred_float_vector = 1;
    check("mxu_grouped", device, &caps, 25);
}

#if TPUCL_HAVE_CLBLAST
/* Fast math: within rounding is enough. Offsets, strides, transposition, patches of convolutions. */
Test(mxu, library)
{
    check("clblast_sgemm", test_device_open(), NULL, 5);
}
#endif
