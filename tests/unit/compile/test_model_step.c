/* SPDX-License-Identifier: Apache-2.0
 * Models built by model/, compiled, run for some steps on the default device: all outputs and variables
 * have the reference interpreter's bits, for one core and for waves of several.
 */
#include <criterion/criterion.h>
#include "../model/model_run.h"
#include "harness/program_run.h"

typedef struct step_case {
    const char *layers;
    int64_t image[3];
    int32_t image_rank;
    tp_dtype image_dtype;
    int64_t batch;
    tp_optim_kind optimizer;
    double momentum;
    bool is_float32, is_pure;
    program_run_options run;
} step_case;

static void run_case(const step_case *c)
{
    tp_model_input input = {.dtype = c->image_dtype};
    EXPECT_OK(tp_shape_init(&input.shape, c->image_rank, c->image));
    const tp_model_options pure = {TP_POLICY_BFLOAT16, TP_PRECISION_DEFAULT};
    const tp_model_options *options = c->is_float32 ? &float32_options : &mixed_options;
    tp_model *model = model_of(c->layers, input, c->is_pure ? &pure : options);
    tp_optim_config optimizer = tp_optim_defaults(c->optimizer);
    if (c->is_pure) {
        optimizer.rounds_stochastically = true;
        optimizer.second_moment = optimizer.gradients = TP_BF16;
    }
    optimizer.momentum = c->momentum;
    const tp_cross_shard shards = {.shards = c->run.cores};
    const tp_model_train train = {c->batch, TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY, true,
                                  &optimizer, &shards};
    tp_graph *graph = NULL;
    EXPECT_OK(tp_model_build_train(model, &train, &graph));
    program_run_expect_equal(graph, &c->run);
    tp_graph_destroy(graph);
    EXPECT_OK(tp_model_build_evaluate(model, c->batch, train.loss, true, &graph));
    program_run_expect_equal(graph, &c->run);
    tp_graph_destroy(graph);
    tp_model_destroy(model);
}

TestSuite(model_step, .timeout = 200);

static const char mlp[] = "{\"type\": \"Flatten\"},"
                          "{\"type\": \"Dense\", \"units\": 48, \"activation\": \"relu\"},"
                          "{\"type\": \"Dense\", \"units\": 33, \"activation\": \"gelu\"},"
                          "{\"type\": \"Dense\", \"units\": 10}";

static const char dropout[] = "{\"type\": \"Flatten\"},"
                              "{\"type\": \"Dense\", \"units\": 40, \"activation\": \"tanh\"},"
                              "{\"type\": \"Dropout\", \"rate\": 0.3},"
                              "{\"type\": \"Dense\", \"units\": 10}";

static const char convnet[] =
    "{\"type\": \"Conv2D\", \"filters\": 16, \"kernel_size\": 3, \"padding\": \"same\","
    " \"activation\": \"relu\"},"
    "{\"type\": \"MaxPooling2D\"},"
    "{\"type\": \"BatchNormalization\"},"
    "{\"type\": \"Conv2D\", \"filters\": 8, \"kernel_size\": [2, 3], \"activation\": \"relu\"},"
    "{\"type\": \"AveragePooling2D\", \"strides\": 1, \"padding\": \"same\"},"
    "{\"type\": \"Flatten\"},"
    "{\"type\": \"Dense\", \"units\": 20, \"activation\": \"relu\"},"
    "{\"type\": \"Dense\", \"units\": 4}";

Test(model_step, mlp_in_mixed_bfloat16_with_adam)
{
    run_case(&(step_case){.layers = mlp,
                          .image = {7, 9},
                          .image_rank = 2,
                          .image_dtype = TP_U8,
                          .batch = 12,
                          .optimizer = TP_OPTIM_ADAM,
                          .run = {.cores = 1, .seed = 5, .steps = 3}});
}

Test(model_step, mlp_on_eight_cores_in_waves_of_three)
{
    run_case(&(step_case){.layers = mlp,
                          .image = {7, 9},
                          .image_rank = 2,
                          .image_dtype = TP_F32,
                          .batch = 5,
                          .optimizer = TP_OPTIM_SGD,
                          .momentum = 0.9,
                          .run = {.cores = 8, .wave_cores = 3, .seed = 6, .steps = 3}});
}

Test(model_step, mlp_in_float32)
{
    run_case(&(step_case){.layers = mlp,
                          .image = {5, 6},
                          .image_rank = 2,
                          .image_dtype = TP_F32,
                          .batch = 9,
                          .optimizer = TP_OPTIM_SGD,
                          .is_float32 = true,
                          .run = {.cores = 2, .seed = 7}});
}

static const char tokens[] =
    "{\"type\": \"Embedding\", \"input_dim\": 11, \"output_dim\": 6},"
    "{\"type\": \"LSTM\", \"units\": 5, \"kernel_constraint\": \"max_norm\"},"
    "{\"type\": \"Dense\", \"units\": 7, \"activation\": \"relu\", \"kernel_regularizer\": \"l2\"},"
    "{\"type\": \"LayerNormalization\"},"
    "{\"type\": \"Dense\", \"units\": 4, \"dtype\": \"float32\"}";

Test(model_step, tokens_with_all_weights_in_bfloat16)
{
    run_case(&(step_case){.layers = tokens,
                          .image = {8},
                          .image_rank = 1,
                          .image_dtype = TP_S32,
                          .batch = 6,
                          .optimizer = TP_OPTIM_ADAFACTOR,
                          .is_pure = true,
                          .run = {.cores = 3, .wave_cores = 2, .seed = 9, .int_limit = 4}});
}

Test(model_step, dropout_recomputes_the_same_mask_in_the_backward_pass)
{
    run_case(&(step_case){.layers = dropout,
                          .image = {30},
                          .image_rank = 1,
                          .image_dtype = TP_F32,
                          .batch = 16,
                          .optimizer = TP_OPTIM_ADAM,
                          .run = {.cores = 4, .wave_cores = 3, .seed = 8}});
}

Test(model_step, convnet_with_batch_norm_and_pooling)
{
    run_case(&(step_case){.layers = convnet,
                          .image = {10, 12, 3},
                          .image_rank = 3,
                          .image_dtype = TP_U8,
                          .batch = 4,
                          .optimizer = TP_OPTIM_ADAM,
                          .run = {.cores = 1, .seed = 9}});
}

Test(model_step, convnet_on_four_cores_in_waves_of_three)
{
    run_case(&(step_case){.layers = convnet,
                          .image = {9, 9, 2},
                          .image_rank = 3,
                          .image_dtype = TP_F32,
                          .batch = 3,
                          .optimizer = TP_OPTIM_SGD,
                          .momentum = 0.5,
                          .run = {.cores = 4, .wave_cores = 3, .seed = 10}});
}

Test(model_step, convnet_in_float32)
{
    run_case(&(step_case){.layers = convnet,
                          .image = {8, 8, 1},
                          .image_rank = 3,
                          .image_dtype = TP_F32,
                          .batch = 3,
                          .optimizer = TP_OPTIM_ADAM,
                          .is_float32 = true,
                          .run = {.cores = 2, .seed = 11}});
}

Test(model_step, convnet_compiled_as_for_a_gpu)
{
    run_case(&(step_case){.layers = convnet,
                          .image = {8, 9, 2},
                          .image_rank = 3,
                          .image_dtype = TP_F32,
                          .batch = 3,
                          .optimizer = TP_OPTIM_ADAM,
                          .run = {.cores = 2, .seed = 12, .as_gpu = true}});
}
