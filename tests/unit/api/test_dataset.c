/* SPDX-License-Identifier: Apache-2.0
 * Data sets through the public calls. */
#include <criterion/criterion.h>
#include <tpucl/dataset.h>

enum { EXAMPLES = 10 };

static tpucl_dataset_options memory_options(void)
{
    static const float inputs[EXAMPLES][2] = {{0, 0},  {1, 10}, {2, 20}, {3, 30}, {4, 40},
                                              {5, 50}, {6, 60}, {7, 70}, {8, 80}, {9, 90}};
    static const int32_t labels[EXAMPLES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    tpucl_dataset_options options = tpucl_dataset_options_default();
    options.kind = "memory";
    options.inputs = (tpucl_array){"x", TPUCL_F32, tpucl_shape2(EXAMPLES, 2), inputs};
    options.labels = (tpucl_array){"y", TPUCL_S32, tpucl_shape1(EXAMPLES), labels};
    options.batch_size = 4;
    return options;
}

static tpucl_dataset *open_dataset(const tpucl_dataset_options *options)
{
    tpucl_dataset *dataset = NULL;
    cr_assert_eq(tpucl_dataset_open(options, &dataset), TPUCL_OK, "%s",
                 tpucl_last_error()->message);
    return dataset;
}

Test(dataset, batches_in_order_and_the_rest)
{
    tpucl_dataset_options options = memory_options();
    tpucl_dataset *dataset = open_dataset(&options);
    tpucl_batch batch;
    cr_assert_eq(tpucl_dataset_example_count(dataset), EXAMPLES);
    for (int pass = 0; pass < 2; pass++) {
        int next = 0;
        static const int64_t sizes[] = {4, 4, 2};
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(tpucl_dataset_next(dataset, &batch), TPUCL_OK);
            cr_assert_eq(batch.example_count, sizes[i]);
            cr_assert_eq(batch.array_count, 2);
            cr_assert_str_eq(batch.arrays[0].name, "x");
            cr_assert_str_eq(batch.arrays[1].name, "y");
            cr_assert_eq(batch.arrays[0].shape.rank, 2);
            cr_assert_eq(batch.arrays[0].shape.dims[0], sizes[i]);
            for (int64_t row = 0; row < batch.example_count; row++, next++) {
                cr_assert_eq(((const float *)batch.arrays[0].data)[2 * row + 1],
                             (float)(10 * next));
                cr_assert_eq(((const int32_t *)batch.arrays[1].data)[row], next);
            }
        }
        cr_assert_eq(tpucl_dataset_next(dataset, &batch), TPUCL_END_OF_DATA);
        cr_assert_eq(tpucl_dataset_next(dataset, &batch), TPUCL_END_OF_DATA);
        cr_assert_eq(tpucl_dataset_rewind(dataset), TPUCL_OK);
    }
    tpucl_dataset_close(dataset);
}

Test(dataset, partial_batches_can_be_dropped)
{
    tpucl_dataset_options options = memory_options();
    options.drop_remainder = options.repeat = true;
    tpucl_dataset *dataset = open_dataset(&options);
    tpucl_batch batch;
    static const int32_t first_labels[] = {0, 4, 0, 4};
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(tpucl_dataset_next(dataset, &batch), TPUCL_OK);
        cr_assert_eq(batch.example_count, 4);
        cr_assert_eq(*(const int32_t *)batch.arrays[1].data, first_labels[i]);
    }
    tpucl_dataset_close(dataset);
    options.batch_size = EXAMPLES + 1;
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    cr_assert_null(dataset);
}

Test(dataset, a_shuffle_shows_every_example_once)
{
    tpucl_dataset_options options = memory_options();
    options.shuffle = true;
    options.seed = 5;
    tpucl_dataset *dataset = open_dataset(&options);
    tpucl_batch batch;
    int seen[EXAMPLES] = {0}, in_place = 0, next = 0;
    while (tpucl_dataset_next(dataset, &batch) == TPUCL_OK) {
        for (int64_t row = 0; row < batch.example_count; row++) {
            int32_t label = ((const int32_t *)batch.arrays[1].data)[row];
            seen[label]++;
            in_place += label == next++;
        }
    }
    for (int i = 0; i < EXAMPLES; i++)
        cr_assert_eq(seen[i], 1);
    cr_assert_lt(in_place, EXAMPLES);
    tpucl_dataset_close(dataset);
}

Test(dataset, wrong_options_are_refused)
{
    tpucl_dataset *dataset = NULL;
    tpucl_dataset_options options = memory_options();
    options.batch_size = 0;
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options = memory_options();
    options.prefetch = INT32_MAX;
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options.prefetch = -1;
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options = memory_options();
    options.labels.shape = tpucl_shape1(EXAMPLES - 1);
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    cr_assert(strstr(tpucl_last_error()->message, "10 inputs but 9 labels"));
    options = memory_options();
    options.inputs.name = NULL;
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options = memory_options();
    options.inputs.shape = tpucl_shape0();
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options = tpucl_dataset_options_default();
    options.batch_size = 1;
    options.kind = "mnist";
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options.kind = "idx";
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    options.kind = "fashion-mnist";
    options.folder = "/nonexistent";
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_NOT_FOUND);
    options.folder = NULL;
    options.part = "validation";
    cr_assert_eq(tpucl_dataset_open(&options, &dataset), TPUCL_INVALID_ARGUMENT);
    cr_assert_null(dataset);
}
