/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/weight.h"

#include <string.h>
#include "graph/opdef.h"

/* Rounding to bf16, measured. */
#define ROUND_WEIGHT 4

double tp_op_weight(const tp_node *node)
{
    static const struct {
        const char *name;
        double weight;
    } table[] = {{"exponential", 20}, {"exponential_minus_one", 30},
                 {"log", 25},         {"log_plus_one", 30},
                 {"power", 80},       {"tanh", 70},
                 {"logistic", 30},    {"erf", 40},
                 {"sine", 40},        {"cosine", 40},
                 {"cbrt", 30},        {"sqrt", 6},
                 {"rsqrt", 12},       {"divide", 6},
                 {"remainder", 200},  {"maximum", 3},
                 {"minimum", 3}};
    if (node->def->op_class == TP_OP_RANDOM) return 60;
    if (node->def->op_class != TP_OP_ELEMENTWISE) return 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(node->def->name, table[i].name) == 0) return table[i].weight;
    return node->dtype == TP_BF16 ? 1 + ROUND_WEIGHT : 1;
}
