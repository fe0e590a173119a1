/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "data/pipeline.h"

enum { COUNT = 103 };
static int32_t values[COUNT];

static tp_source *make_source(void)
{
    tp_source *source = NULL;
    tp_field field = {.name = "value", .dtype = TP_S32};
    const void *arrays[1] = {values};
    for (int i = 0; i < COUNT; i++)
        values[i] = 1000 + i;
    cr_assert_eq(tp_source_from_arrays(&field, arrays, 1, COUNT, &source), TPUCL_OK);
    return source;
}

Test(pipeline, each_example_once_an_epoch_and_the_last_batch_padded)
{
    tp_source *source = make_source();
    tp_pipeline_options options = {.batch = 10, .shuffle = true, .seed = 3, .epochs = 2};
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    cr_assert_eq(tp_pipeline_create(source, &options, &pipeline), TPUCL_OK);
    cr_assert_eq(tp_pipeline_batches_per_epoch(pipeline), 11);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        int seen[COUNT] = {0};
        for (int64_t i = 0; i < 11; i++) {
            cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_OK);
            cr_assert_eq(batch->epoch, epoch);
            cr_assert_eq(batch->index, i);
            cr_assert_eq(batch->valid, i == 10 ? 3 : 10);
            cr_assert_eq(batch->is_last_of_epoch, i == 10);
            const int32_t *rows = batch->arrays[0];
            for (int64_t k = 0; k < 10; k++)
                if (k < batch->valid)
                    seen[rows[k] - 1000]++;
                else
                    cr_assert_eq(rows[k], 0);
        }
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(seen[i], 1);
    }
    cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_END_OF_DATA);
    tp_pipeline_destroy(pipeline);
    tp_source_destroy(source);
}

Test(pipeline, going_on_in_the_middle_gives_the_same_batches)
{
    tp_source *source = make_source();
    tp_pipeline_options options = {.batch = 10, .shuffle = true, .seed = 3};
    tp_pipeline *whole = NULL, *rest = NULL;
    const tp_batch *a = NULL, *b = NULL;
    cr_assert_eq(tp_pipeline_create(source, &options, &whole), TPUCL_OK);
    for (int i = 0; i < 11 + 4; i++)
        cr_assert_eq(tp_pipeline_next(whole, &a), TPUCL_OK);
    options.start_epoch = 1, options.start_batch = 4;
    cr_assert_eq(tp_pipeline_create(source, &options, &rest), TPUCL_OK);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(tp_pipeline_next(whole, &a), TPUCL_OK);
        cr_assert_eq(tp_pipeline_next(rest, &b), TPUCL_OK);
        cr_assert_arr_eq(a->arrays[0], b->arrays[0], 40);
        cr_assert(a->epoch == b->epoch && a->index == b->index);
    }
    tp_pipeline_destroy(whole);
    tp_pipeline_destroy(rest);
    tp_source_destroy(source);
}

Test(pipeline, ranges_and_wrong_options)
{
    tp_source *source = make_source();
    tp_pipeline *pipeline = NULL;
    const tp_batch *batch = NULL;
    tp_pipeline_options options = {.batch = 50, .first = 100, .epochs = 1};
    cr_assert_eq(tp_pipeline_create(source, &options, &pipeline), TPUCL_OK);
    cr_assert_eq(tp_pipeline_next(pipeline, &batch), TPUCL_OK);
    cr_assert_eq(batch->valid, 3);
    cr_assert_eq(((int32_t *)batch->arrays[0])[2], 1102);
    tp_pipeline_destroy(pipeline);
    options.count = 4;
    cr_assert_eq(tp_pipeline_create(source, &options, &pipeline), TPUCL_INVALID_ARGUMENT);
    tp_pipeline_options greedy = {.batch = 1, .prefetch = INT32_MAX};
    cr_assert_eq(tp_pipeline_create(source, &greedy, &pipeline), TPUCL_INVALID_ARGUMENT);
    options = (tp_pipeline_options){.batch = 0};
    cr_assert_eq(tp_pipeline_create(source, &options, &pipeline), TPUCL_INVALID_ARGUMENT);
    tp_source_destroy(source);
}
