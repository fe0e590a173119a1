/* SPDX-License-Identifier: Apache-2.0
 * State in bf16 that cannot follow its updates. A bf16 number has 8 bits: rounding to nearest loses what is below
 * half a unit of its last place, which lies between 2^-9 and 2^-8 of the number. So a change below 2^-9 of a number
 * is always lost, in every step anew.
 */
#include <math.h>
#include <stdio.h>
#include "check/rules.h"
#include "topo/config_table.h"

#define LOST 0x1p-9

/* How far an optimizer moves a weight in a step. */
typedef enum step_size {
    STEP_OF_RATE,    /* about the rate, whatever the gradient: it is divided by its own size */
    STEP_OF_WEIGHT,  /* the rate times the size of the weights */
    STEP_OF_GRADIENT /* the rate times the gradient */
} step_size;

static step_size step_size_of(int32_t optimizer)
{
    switch ((tp_config_optimizer)optimizer) {
    case TP_OPTIMIZER_SGD:
    case TP_OPTIMIZER_ADADELTA:
        return STEP_OF_GRADIENT;
    case TP_OPTIMIZER_ADAFACTOR:
    case TP_OPTIMIZER_LAMB:
    case TP_OPTIMIZER_LARS:
        return STEP_OF_WEIGHT;
    default:
        return STEP_OF_RATE;
    }
}

/* The highest rate of the run; momentum adds up steps. */
static double rate_of(const tp_config *config)
{
    double rate = config->optimizer.learning_rate;
    const double warm = config->optimizer.schedule.warmup_target;
    if (config->optimizer.schedule.warmup_steps > 0 && warm > rate) rate = warm;
    if (tp_config_choice_has("optimizer.trust_coefficient", config->optimizer.name))
        rate *= config->optimizer.trust_coefficient;
    if (tp_config_choice_has("optimizer.momentum", config->optimizer.name) &&
        config->optimizer.momentum < 1)
        rate /= 1 - config->optimizer.momentum;
    return rate;
}

/* The share of a variable's initial values that are larger than `least`. */
static double share_above(const tp_variable *variable, double least)
{
    switch (variable->init) {
    case TP_INIT_ONES:
        return least < 1;
    case TP_INIT_CONSTANT:
        return fabs(variable->init_a) > least;
    case TP_INIT_UNIFORM: {
        const double low = variable->init_a, high = variable->init_b;
        const double size = high - low;
        if (size <= 0) return fabs(low) > least;
        return (fmax(0, high - fmax(low, least)) + fmax(0, fmin(high, -least) - low)) / size;
    }
    case TP_INIT_NORMAL:
    case TP_INIT_TRUNCATED_NORMAL: {
        const double deviation = fabs(variable->init_b);
        return deviation > 0 ? erfc(least / (deviation * sqrt(2))) : 0;
    }
    default:
        return 0;
    }
}

/* Trained bf16 variables. */
typedef struct narrow_weights {
    double elems, lost; /* lost: those whose steps of STEP_OF_RATE are lost at the start */
    int32_t count;
    const char *worst; /* the one with most of them */
} narrow_weights;

static narrow_weights find_narrow(const tp_graph *graph, double least)
{
    narrow_weights found = {.worst = ""};
    double most = -1;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        const tp_variable *variable = &graph->variables[i];
        if (!variable->is_trainable || variable->dtype != TP_BF16) continue;
        const double elems = (double)tp_shape_elems(&variable->shape);
        const double lost = elems * share_above(variable, least);
        found.count++;
        found.elems += elems;
        found.lost += lost;
        if (lost <= most) continue;
        most = lost;
        found.worst = variable->name;
    }
    return found;
}

tpucl_status tp_rule_bfloat16_weights(const tp_check_input *input, tp_check_report *report)
{
    static const char rule[] = "bfloat16-weights";
    static const char remedy[] = "set \"weights_rounding\": \"stochastic\" in 'precision', or keep "
                                 "the weights in float32 (mixed_bfloat16)";
    const tp_config *config = input->config;
    const double rate = rate_of(config);
    const narrow_weights narrow = find_narrow(input->train, rate / LOST);
    if (!narrow.count || config->precision.weights_rounding == TP_ROUNDING_STOCHASTIC)
        return TPUCL_OK;
    switch (step_size_of(config->optimizer.name)) {
    case STEP_OF_RATE:
        if (narrow.lost < 0.01 * narrow.elems) return TPUCL_OK;
        return tp_check_add(report, TP_SEVERITY_WARNING, rule, narrow.worst, remedy,
                            "%.0f %% of the %d bf16 variables' weights begin above %.3g; a step of "
                            "%.3g, which is as far as this optimizer goes, is below half a unit of "
                            "their last place and leaves them where they are",
                            100 * narrow.lost / narrow.elems, (int)narrow.count, rate / LOST, rate);
    case STEP_OF_WEIGHT:
        if (rate >= 4 * LOST) return TPUCL_OK;
        return tp_check_add(report, TP_SEVERITY_WARNING, rule, narrow.worst, remedy,
                            "steps are %.3g of the size of the weights; below 1/512 (0.002) of a "
                            "bf16 weight they leave it where it is",
                            rate);
    case STEP_OF_GRADIENT:
    default:
        return tp_check_add(report, rate > 0.25 ? TP_SEVERITY_NOTE : TP_SEVERITY_WARNING, rule,
                            narrow.worst, remedy,
                            "at the rate %.3g a gradient below %.3g of its bf16 weight leaves it "
                            "where it is",
                            rate, LOST / rate);
    }
}

/* What an average keeps of itself in a step; 0: it is no such average. */
static tpucl_status check_decay(tp_check_report *report, const tp_config *config, bool is_second,
                                const char *key, double decay)
{
    char path[64], where[64], remedy[128];
    snprintf(path, sizeof path, "optimizer.%s", key);
    if (!tp_config_choice_has(path, config->optimizer.name) || 1 - decay >= LOST || decay <= 0)
        return TPUCL_OK;
    const char *state = is_second ? "second_moment" : "first_moment";
    snprintf(where, sizeof where, "precision.%s", state);
    snprintf(remedy, sizeof remedy, "keep '%s' in float32, or take a %s below 0.998", where, key);
    return tp_check_add(report, TP_SEVERITY_WARNING, "bfloat16-moment", where, remedy,
                        "%s is %.6g: the average loses %.2g of itself in a step, below half a unit "
                        "of bf16's last place, so it never decays",
                        key, decay, 1 - decay);
}

/* Steps after which Adafactor's average, which keeps 1 - t^decay, moves by less than LOST. */
static tpucl_status check_adafactor(const tp_check_input *input, tp_check_report *report)
{
    const tp_config *config = input->config;
    const int64_t per_epoch =
        config->global_batch > 0
            ? (input->train_examples + config->global_batch - 1) / config->global_batch
            : 0;
    const double steps = (double)(config->steps ? config->steps : config->epochs * per_epoch);
    const double last = pow(LOST, 1 / config->optimizer.beta_2_decay);
    if (!(steps > last)) return TPUCL_OK;
    return tp_check_add(
        report, TP_SEVERITY_WARNING, "bfloat16-moment", "precision.second_moment",
        "keep 'precision.second_moment' in float32: rows and columns are small",
        "from step %.0f on of %.0f the averages of squares move by less than half a "
        "unit of bf16's last place, so they stop",
        last, steps);
}

tpucl_status tp_rule_bfloat16_moments(const tp_check_input *input, tp_check_report *report)
{
    const tp_config *config = input->config;
    const bool is_first = config->precision.first_moment == TP_CONFIG_BFLOAT16;
    const bool is_second = config->precision.second_moment == TP_CONFIG_BFLOAT16;
    if (is_first) {
        TP_TRY(check_decay(report, config, false, "beta_1", config->optimizer.beta_1));
        TP_TRY(check_decay(report, config, false, "momentum", config->optimizer.momentum));
    }
    if (!is_second) return TPUCL_OK;
    TP_TRY(check_decay(report, config, true, "beta_2", config->optimizer.beta_2));
    TP_TRY(check_decay(report, config, true, "rho", config->optimizer.rho));
    if (config->optimizer.name == TP_OPTIMIZER_ADAFACTOR) return check_adafactor(input, report);
    if (config->optimizer.name != TP_OPTIMIZER_ADAGRAD) return TPUCL_OK;
    return tp_check_add(report, TP_SEVERITY_WARNING, "bfloat16-moment", "precision.second_moment",
                        "keep 'precision.second_moment' in float32",
                        "Adagrad's sums of squares stop growing after about 512 equal gradients: "
                        "what a step adds is below half a unit of bf16's last place");
}

/* Machines whose all-reduce adds bf16 numbers in bf16 round in every addition of the chain or tree. */
tpucl_status tp_rule_bfloat16_gradients(const tp_check_input *input, tp_check_report *report)
{
    enum { MANY = 16 };
    const tp_config *config = input->config;
    const int64_t cores =
        config->cross_shard.group_size ? config->cross_shard.group_size : input->topology->cores;
    if (config->precision.gradients != TP_CONFIG_BFLOAT16 || cores < MANY) return TPUCL_OK;
    return tp_check_add(
        report, TP_SEVERITY_WARNING, "bfloat16-gradients", "precision.gradients",
        "keep 'precision.gradients' in float32, or sum in groups of fewer cores",
        "gradients of %lld cores are summed in bf16: where parts cancel, what is left "
        "is rounding, and a machine that adds in bf16 (tpucl's partial sums are f32) "
        "may lose up to %.0f %% of the sum of their magnitudes",
        (long long)cores, 100 * fmin(1, (double)(cores + 1) * LOST));
}
