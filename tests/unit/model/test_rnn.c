/* SPDX-License-Identifier: Apache-2.0
 * Recurrent layers against Keras (tests/golden/gen_rnn.py): outputs and all gradients; states, masks,
 * dropout, mistakes.
 */
#include "model_run.h"

#include "golden/rnn.h"
#include "model/layer.h"

enum { B = 3, T = 5, F = 4 };

typedef struct rnn_case {
    graph_run run;
    tp_arena *arena;
    tp_json_document *document;
    tp_layer layer;
    tp_layer_losses losses;
    int64_t next_stream;
    tp_node_id inputs[3], weights[6], outputs[TP_LAYER_MAX_OUTPUTS], masks[3];
    tp_shape shapes[3];
    tp_layer_context context;
} rnn_case;

static void read_layer(rnn_case *c, const char *text)
{
    tp_problems problems = {0};
    EXPECT_OK(tp_arena_create(0, &c->arena));
    EXPECT_OK(tp_json_parse(text, strlen(text), "test.json", &c->document));
    cr_assert(tp_layer_read(tp_json_root(c->document), c->arena, &problems, &c->layer), "%s",
              problems.text);
}

/* Steps of zeros as in gen_rnn.py. */
static void mask_some(float *x)
{
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++)
            if ((b == 0 && t >= 3) || (b == 1 && (t == 0 || t == 2)) || b == 2)
                memset(x + (b * T + t) * F, 0, F * sizeof *x);
}

/* x is stream 1, weights are streams 2, 3, ...; states (of `units`) streams 30 and 31. */
static void rnn_begin(rnn_case *c, const char *text, bool is_masked, int32_t states, int64_t units)
{
    static const int64_t last_axis[] = {2};
    tp_problems problems = {0};
    memset(c, 0, sizeof *c);
    graph_run_begin(&c->run);
    read_layer(c, text);
    tp_graph *g = c->run.graph;
    c->shapes[0] = (tp_shape){2, {T, F}};
    c->shapes[1] = c->shapes[2] = (tp_shape){1, {units}};
    cr_assert(tp_layer_infer_nested(&c->layer, c->shapes, 1 + states, &problems), "%s",
              problems.text);
    c->inputs[0] = graph_run_input(&c->run, TP_F32, 1, 3, (int64_t[]){B, T, F});
    if (is_masked) mask_some(c->run.data[0]);
    for (int32_t i = 0; i < states; i++)
        c->inputs[1 + i] = graph_run_input(&c->run, TP_F32, 30 + i, 2, (int64_t[]){B, units});
    for (int32_t i = 0; i < c->layer.weight_count; i++)
        c->weights[i] = graph_run_input(&c->run, TP_F32, 2 + i, c->layer.weights[i].shape.rank,
                                        c->layer.weights[i].shape.dims);
    for (int i = 0; i < 3; i++)
        c->masks[i] = TP_NO_NODE;
    const tp_node_id is_set = tp_op_compare(g, "NE", c->inputs[0], tp_op_scalar(g, TP_F32, 0));
    if (is_masked) c->masks[0] = tp_op_reduce(g, is_set, "or", last_axis, 1);
    c->context = (tp_layer_context){.graph = g,
                                    .batch = B,
                                    .weight = TP_NO_NODE,
                                    .dtype = TP_F32,
                                    .precision = "f32",
                                    .variables = c->weights,
                                    .input_masks = c->masks,
                                    .losses = &c->losses,
                                    .next_stream = &c->next_stream};
}

static void rnn_call(rnn_case *c)
{
    tp_layer_call(&c->context, &c->layer, c->inputs, c->outputs);
    EXPECT_OK(tp_graph_check(c->run.graph));
}

static void rnn_end(rnn_case *c)
{
    tp_json_destroy(c->document);
    tp_arena_destroy(c->arena);
    graph_run_end(&c->run);
}

/* Within 1e-5 of f64, relative to the largest element. */
static void expect_near(rnn_case *c, tp_node_id node, const double *golden, const char *what)
{
    const tp_host_tensor *out = graph_run_eval(&c->run, node);
    const int64_t count = tp_shape_elems(&out->shape);
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(golden[i]));
    for (int64_t i = 0; i < count; i++) {
        const double found = ((const float *)out->data)[i];
        cr_assert(fabs(found - golden[i]) <= 1e-5 * largest,
                  "%s: element %lld is %.9g, Keras has %.9g", what, (long long)i, found, golden[i]);
    }
}

Test(rnn, like_keras)
{
    for (size_t i = 0; i < sizeof golden_rnn / sizeof *golden_rnn; i++) {
        rnn_case c;
        tp_node_id d[7];
        rnn_begin(&c, golden_rnn[i].layer, golden_rnn[i].is_masked, 0, 0);
        cr_assert_eq(c.layer.weight_count, golden_rnn[i].weights);
        rnn_call(&c);
        tp_graph *g = c.run.graph;
        const tp_shape shape = tp_graph_node(g, c.outputs[0])->shape;
        const tp_node_id factor = graph_run_input(&c.run, TP_F32, 20, shape.rank, shape.dims);
        const tp_node_id loss =
            tp_op_reduce(g, tp_op_multiply(g, c.outputs[0], factor), "add", NULL, 0);
        tp_node_id wrt[7] = {c.inputs[0]};
        for (int32_t w = 0; w < c.layer.weight_count; w++)
            wrt[w + 1] = c.weights[w];
        tp_graph_gradients(g, loss, wrt, 1 + c.layer.weight_count, d);
        EXPECT_OK(tp_graph_check(g));
        expect_near(&c, c.outputs[0], golden_rnn[i].y, golden_rnn[i].layer);
        expect_near(&c, d[0], golden_rnn[i].dx, golden_rnn[i].layer);
        for (int32_t w = 0; w < c.layer.weight_count; w++)
            expect_near(&c, d[w + 1], golden_rnn[i].dw[w], golden_rnn[i].layer);
        coverage_note("layer.golden", c.layer.type->name);
        coverage_note("layer.gradient", c.layer.type->name);
        rnn_end(&c);
    }
}

/* ---- states ---- */

/* A sequence in two parts, the state handed on, is the sequence. */
static void expect_states_go_on(const char *text, int32_t states, int64_t units)
{
    rnn_case c;
    float whole[2][B * 8];
    rnn_begin(&c, text, false, states, units);
    tp_graph *g = c.run.graph;
    rnn_call(&c);
    for (int32_t i = 0; i < states; i++)
        memcpy(whole[i], graph_run_eval(&c.run, c.outputs[1 + i])->data,
               (size_t)(B * units) * sizeof(float));

    const tp_node_id parts[] = {
        tp_op_slice(g, c.inputs[0], (int64_t[]){0, 0, 0}, (int64_t[]){B, 2, F}, NULL),
        tp_op_slice(g, c.inputs[0], (int64_t[]){0, 2, 0}, (int64_t[]){B, T, F}, NULL)};
    for (int part = 0; part < 2; part++) {
        c.shapes[0].dims[0] = part ? T - 2 : 2;
        c.inputs[0] = parts[part];
        rnn_call(&c);
        for (int32_t i = 0; i < states; i++)
            c.inputs[1 + i] = c.outputs[1 + i];
    }
    for (int32_t i = 0; i < states; i++) {
        const float *found = graph_run_eval(&c.run, c.outputs[1 + i])->data;
        cr_assert(memcmp(found, whole[i], (size_t)(B * units) * sizeof(float)) == 0);
    }
    rnn_end(&c);
}

Test(rnn, states_go_on)
{
    expect_states_go_on("{\"type\": \"LSTM\", \"units\": 3, \"return_state\": true}", 2, 3);
    expect_states_go_on("{\"type\": \"GRU\", \"units\": 2, \"return_state\": true}", 1, 2);
    expect_states_go_on("{\"type\": \"SimpleRNN\", \"units\": 4, \"return_state\": true}", 1, 4);
}

/* Before the first step that counts, a given state is kept and the output is zero, as in Keras. */
Test(rnn, masked_steps_keep_a_given_state)
{
    rnn_case c;
    rnn_begin(
        &c, "{\"type\": \"GRU\", \"units\": 2, \"return_sequences\": true, \"return_state\": true}",
        true, 1, 2);
    rnn_call(&c);
    const float *state = graph_run_eval(&c.run, c.outputs[1])->data;
    cr_assert(memcmp(state + 4, (const float *)c.run.data[1] + 4, 2 * sizeof(float)) == 0,
              "the third example has no step that counts");
    const float *y = graph_run_eval(&c.run, c.outputs[0])->data;
    for (int i = 0; i < T * 2; i++)
        cr_assert_eq(y[2 * T * 2 + i], 0);
    /* The first example has three steps that count. */
    cr_assert(memcmp(y + 2, y + 4, 2 * sizeof(float)) != 0);
    cr_assert(memcmp(y + 4, y + 6, 2 * sizeof(float)) == 0);
    cr_assert(memcmp(y + 4, y + 8, 2 * sizeof(float)) == 0);
    cr_assert_neq(c.context.output_masks[0], TP_NO_NODE);
    rnn_end(&c);
}

/* ---- dropout, dtype ---- */

Test(rnn, dropout_in_training_only)
{
    static const char *const layers[] = {
        "{\"type\": \"LSTM\", \"units\": 3, \"dropout\": 0.5, \"recurrent_dropout\": 0.25}",
        "{\"type\": \"GRU\", \"units\": 3, \"dropout\": 0.5}",
        "{\"type\": \"GRU\", \"units\": 3, \"recurrent_dropout\": 0.5, \"reset_after\": false}",
        "{\"type\": \"SimpleRNN\", \"units\": 3, \"recurrent_dropout\": 0.5}"};
    static const int draws[] = {8, 1, 3, 1}; /* masks: Keras has one each, or one per gate */
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        rnn_case c;
        rnn_begin(&c, layers[i], false, 0, 0);
        for (int training = 0; training < 2; training++) {
            int count = 0;
            const int32_t first = c.run.graph->node_count;
            c.context.is_training = training;
            rnn_call(&c);
            for (tp_node_id id = first; id < c.run.graph->node_count; id++)
                count += tp_node_is(&c.run.graph->nodes[id], "bernoulli");
            cr_assert_eq(count, training * draws[i], "%s: %d", layers[i], count);
            graph_run_eval(&c.run, c.outputs[0]);
        }
        rnn_end(&c);
    }
}

Test(rnn, mixed_bfloat16_keeps_c_in_f32)
{
    rnn_case c;
    rnn_begin(&c, "{\"type\": \"LSTM\", \"units\": 3}", false, 0, 0);
    c.context.dtype = TP_BF16;
    c.context.precision = "default";
    rnn_call(&c);
    int carries[2] = {0};
    for (tp_node_id id = 0; id < c.run.graph->node_count; id++) {
        const tp_node *node = &c.run.graph->nodes[id];
        if (node->def->loop_part == TP_LOOP_CARRY) carries[node->dtype == TP_F32]++;
    }
    cr_assert(carries[0] == 1 && carries[1] == 1);
    cr_assert_eq(graph_run_eval(&c.run, c.outputs[0])->dtype, TP_BF16);
    rnn_end(&c);
}

/* ---- initial values, mistakes ---- */

Test(rnn, initial_values)
{
    tp_model *model = model_of("{\"type\": \"LSTM\", \"units\": 4}",
                               f32_input(2, (int64_t[]){T, F}), &float32_options);
    tp_graph *graph;
    EXPECT_OK(tp_model_build_predict(model, 1, &graph));
    model_run run = model_start(graph, 1, 0);
    const float *bias = model_variable(&run, "lstm/bias")->data;
    for (int i = 0; i < 16; i++)
        cr_assert_eq(bias[i], i >= 4 && i < 8);
    const float *u = model_variable(&run, "lstm/recurrent_kernel")->data; /* rows are orthonormal */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double sum = 0;
            for (int k = 0; k < 16; k++)
                sum += (double)u[i * 16 + k] * (double)u[j * 16 + k];
            cr_assert_float_eq(sum, i == j, 1e-6);
        }
    model_stop(&run);
    tp_model_destroy(model);
}

Test(rnn, mistakes)
{
    static const struct {
        const char *layer, *part;
    } mistakes[] = {
        {"{\"type\": \"LSTM\", \"units\": 2, \"stateful\": true}", "give the state as inputs"},
        {"{\"type\": \"LSTM\", \"units\": 2, \"bias_initializer\": \"ones\"}", "must be zeros"},
        {"{\"type\": \"Bidirectional\", \"layer\": {\"type\": \"Dense\", \"units\": 2}}",
         "expected LSTM, GRU or SimpleRNN"},
        {"{\"type\": \"Bidirectional\", \"layer\": {\"type\": \"GRU\", \"units\": 2}, "
         "\"backward_layer\": {\"type\": \"GRU\", \"units\": 2}}",
         "must differ"},
        {"{\"type\": \"Bidirectional\", \"merge_mode\": \"sum\", \"layer\": {\"type\": \"GRU\", "
         "\"units\": 2}, \"backward_layer\": {\"type\": \"GRU\", \"units\": 3, \"go_backwards\": "
         "true}}",
         "as many units"},
        {"{\"type\": \"GRU\", \"units\": 2, \"unit_forget_bias\": true}", "has no argument"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const tp_model_input input = f32_input(2, (int64_t[]){T, F});
        tp_model *model = NULL;
        cr_assert_neq(model_parse(mistakes[i].layer, &input, &float32_options, &model), TPUCL_OK);
        cr_assert(strstr(tpucl_last_error()->message, mistakes[i].part), "%s",
                  tpucl_last_error()->message);
    }
}
