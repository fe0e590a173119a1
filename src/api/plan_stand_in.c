/* SPDX-License-Identifier: Apache-2.0
 * Data for a plan without data: what the model says that it takes.
 */
#include <string.h>
#include "api/plan_internal.h"

static tpucl_status read_shape(const tp_json *value, tp_shape *out_shape)
{
    int64_t dims[TP_MAX_RANK];
    TP_TRY(tp_json_expect(value, TP_JSON_ARRAY));
    if (value->count > TP_MAX_RANK - 1)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "an input has %zu dimensions, expected at most %d",
                       value->count, TP_MAX_RANK - 1);
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(tp_json_as_int64(&value->items[i], 1, TP_MAX_ELEMS, &dims[i]));
    return tp_shape_init(out_shape, (int)value->count, dims);
}

static tpucl_status read_input(const tp_json *value, tp_model_input *out_input)
{
    const tp_json *shape = NULL;
    const char *dtype = "float32";
    *out_input = (tp_model_input){.dtype = TP_F32, .name = "image"};
    TP_TRY(tp_json_expect(value, TP_JSON_OBJECT));
    TP_TRY(tp_json_get_string(value, "name", &out_input->name));
    TP_TRY(tp_json_get_string(value, "dtype", &dtype));
    TP_TRY(tp_json_require(value, "shape", TP_JSON_ARRAY, &shape));
    if (strcmp(dtype, "int32") == 0) out_input->dtype = TP_S32;
    return read_shape(shape, &out_input->shape);
}

static tpucl_status read_inputs(const tp_config *config, tp_model_input *out_inputs,
                                int32_t *out_count)
{
    const tp_json *inputs = tp_json_member(config->model, "inputs");
    const bool has_shapes = inputs && inputs->kind == TP_JSON_ARRAY && inputs->count > 0 &&
                            inputs->count <= TP_MODEL_MAX_INPUTS &&
                            tp_json_member(&inputs->items[0], "shape");
    if (has_shapes) {
        for (size_t i = 0; i < inputs->count; i++)
            TP_TRY(read_input(&inputs->items[i], &out_inputs[i]));
        *out_count = (int32_t)inputs->count;
        return TPUCL_OK;
    }
    if (!config->input_shape.count)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "there are no data to plan with, and neither 'input_shape' nor the model's "
                       "'inputs' say what an example is");
    out_inputs[0] = (tp_model_input){.dtype = TP_F32, .name = "image"};
    *out_count = 1;
    return tp_shape_init(&out_inputs[0].shape, (int)config->input_shape.count,
                         config->input_shape.items);
}

tpucl_status tp_api_stand_in(const tp_config *config, tp_source **out_source)
{
    tp_model_input inputs[TP_MODEL_MAX_INPUTS];
    const tp_model_options options = {.policy = TP_POLICY_FLOAT32, .precision = TP_PRECISION_F32};
    tp_model *model = NULL;
    int32_t count = 0;
    TP_TRY(read_inputs(config, inputs, &count));
    TP_TRY(tp_model_create_many(config->model, inputs, count, &options, &model));
    const tpucl_status status = tp_api_make_example(model, config, out_source);
    tp_model_destroy(model);
    return status;
}
