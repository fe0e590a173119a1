/* SPDX-License-Identifier: Apache-2.0
 * CLBlast on our buffers, with small integers: every sum is exact, so results are compared by
 * equality. */
#include <math.h>
#include "device_test.h"
#include "device/clblast.h"

static float value_at(uint64_t i, int salt)
{
    return (float)((int)((i * 7 + (uint64_t)salt * 3) % 11) - 5);
}

static void fill_host(float *data, uint64_t elems, int salt)
{
    for (uint64_t i = 0; i < elems; i++)
        data[i] = value_at(i, salt);
}

enum { ROOM = 4096 };

static void check(tp_device *device, tp_clblast_problem p)
{
    static float a[ROOM], b[ROOM], c[ROOM], before[ROOM];
    tp_buffer *buffers[3];
    fill_host(a, ROOM, 1);
    fill_host(b, ROOM, 2);
    for (int i = 0; i < ROOM; i++)
        before[i] = (float)NAN;
    static const char *const names[] = {"a", "b", "c"};
    const float *const contents[] = {a, b, before};
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(tp_buffer_create(device, ROOM * sizeof(float), names[i], &buffers[i]));
        ASSERT_OK(tp_buffer_write(buffers[i], 0, contents[i], ROOM * sizeof(float)));
    }
    tp_event *event;
    ASSERT_OK(tp_clblast_sgemm(device, &p, buffers[0], buffers[1], buffers[2], &event));
    ASSERT_OK(tp_event_wait(&event, 1));
    tp_event_release(event);
    ASSERT_OK(tp_buffer_read(buffers[2], 0, c, ROOM * sizeof(float)));
    static bool is_result[ROOM];
    memset(is_result, 0, sizeof is_result);
    for (int64_t s = 0; s < p.batch; s++)
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++) {
                float sum = 0;
                for (int64_t k = 0; k < p.k; k++) {
                    const int64_t at = p.transpose_a ? k * p.lda + i : i * p.lda + k;
                    const int64_t bt = p.transpose_b ? j * p.ldb + k : k * p.ldb + j;
                    sum += a[p.offset_a + (uint64_t)(s * p.stride_a + at)] *
                           b[p.offset_b + (uint64_t)(s * p.stride_b + bt)];
                }
                const uint64_t ct = p.offset_c + (uint64_t)(s * p.stride_c + i * p.ldc + j);
                is_result[ct] = true;
                cr_assert_eq(c[ct], sum, "batch %d, row %d, column %d", (int)s, (int)i, (int)j);
            }
    for (int i = 0; i < ROOM; i++)
        if (!is_result[i]) cr_assert(isnan(c[i]), "element %d is outside c", i);
    for (int i = 0; i < 3; i++)
        tp_buffer_release(buffers[i]);
}

Test(clblast, products)
{
    if (!tp_clblast_is_available()) cr_skip_test("no CLBlast");
    tp_device *device = open_default(NULL);
    check(device,
          (tp_clblast_problem){.batch = 1, .m = 5, .n = 7, .k = 3, .lda = 3, .ldb = 7, .ldc = 7});
    check(device, (tp_clblast_problem){.batch = 1,
                                       .m = 5,
                                       .n = 7,
                                       .k = 3,
                                       .transpose_a = true,
                                       .transpose_b = true,
                                       .lda = 9,
                                       .ldb = 4,
                                       .ldc = 11,
                                       .offset_a = 13,
                                       .offset_b = 17,
                                       .offset_c = 19});
    check(device, (tp_clblast_problem){.batch = 3,
                                       .m = 4,
                                       .n = 6,
                                       .k = 8,
                                       .lda = 8,
                                       .ldb = 6,
                                       .ldc = 6,
                                       .stride_a = 32,
                                       .stride_b = 0,
                                       .stride_c = 40,
                                       .offset_c = 5});
    tp_device_close(device);
}

Test(clblast, empty_products)
{
    if (!tp_clblast_is_available()) cr_skip_test("no CLBlast");
    tp_device *device = open_default(NULL);
    check(device,
          (tp_clblast_problem){
              .batch = 2, .m = 3, .n = 2, .k = 0, .lda = 1, .ldb = 2, .ldc = 5, .stride_c = 20});
    check(device,
          (tp_clblast_problem){.batch = 1, .m = 0, .n = 2, .k = 3, .lda = 3, .ldb = 2, .ldc = 2});
    check(device,
          (tp_clblast_problem){.batch = 0, .m = 3, .n = 2, .k = 3, .lda = 3, .ldb = 2, .ldc = 2});
    double seconds = -1;
    const tp_clblast_problem empty = {
        .batch = 1, .m = 0, .n = 2, .k = 3, .lda = 3, .ldb = 2, .ldc = 2};
    ASSERT_OK(tp_clblast_warm(device, &empty, &seconds));
    cr_assert_eq(seconds, 0);
    tp_device_close(device);
}

Test(clblast, wrong_shapes)
{
    if (!tp_clblast_is_available()) cr_skip_test("no CLBlast");
    tp_device *device = open_default(NULL);
    tp_buffer *x;
    ASSERT_OK(tp_buffer_create(device, 100 * sizeof(float), "x", &x));
    tp_clblast_problem p = {.batch = 1, .m = 10, .n = 10, .k = 10, .lda = 10, .ldb = 10, .ldc = 10};
    p.m = 11;
    ASSERT_FAILS(tp_clblast_sgemm(device, &p, x, x, x, NULL), TPUCL_INVALID_ARGUMENT,
                 "matrix c: 110 elements at offset 0 are outside 'x' of 100");
    p.m = 10;
    p.lda = 9;
    ASSERT_FAILS(tp_clblast_sgemm(device, &p, x, x, x, NULL), TPUCL_INVALID_ARGUMENT,
                 "matrix a: leading dimension 9");
    p.lda = 10;
    p.offset_b = UINT64_MAX;
    ASSERT_FAILS(tp_clblast_sgemm(device, &p, x, x, x, NULL), TPUCL_INVALID_ARGUMENT, "matrix b");
    p.offset_b = 0;
    p.m = -1;
    ASSERT_FAILS(tp_clblast_sgemm(device, &p, x, x, x, NULL), TPUCL_INVALID_ARGUMENT, "m -1");
    tp_buffer_release(x);
    tp_device_close(device);
}
