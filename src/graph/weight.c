/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/weight.h"

#include <string.h>
#include "graph/opdef.h"

double tp_op_weight(const tp_node *node)
{
    static const struct {
        const char *name;
        double weight;
    } table[] = {{"exponential", 20}, {"exponential_minus_one", 30},
                 {"log", 25},         {"log_plus_one", 30},
                 {"power", 80},       {"tanh", 35},
                 {"logistic", 30},    {"erf", 40},
                 {"sine", 40},        {"cosine", 40},
                 {"cbrt", 30},        {"sqrt", 6},
                 {"rsqrt", 12},       {"divide", 6},
                 {"remainder", 200}};
    if (node->def->op_class == TP_OP_RANDOM) return 60;
    if (node->def->op_class != TP_OP_ELEMENTWISE) return 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(node->def->name, table[i].name) == 0) return table[i].weight;
    return 1;
}
