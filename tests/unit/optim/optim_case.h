/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of golden cases: by name, with arguments as "name=value ...".
 */
#ifndef TESTS_UNIT_OPTIM_OPTIM_CASE_H
#define TESTS_UNIT_OPTIM_OPTIM_CASE_H

#include <criterion/criterion.h>
#include "optim/optimizer.h"

static inline tp_optim_kind kind_of(const char *name)
{
    static const char *const all[] = {
#define NAME(id, symbol, name, keys) name,
        TP_OPTIMIZER_LIST(NAME)
#undef NAME
    };
    size_t i = 0;
    while (i < sizeof all / sizeof *all && strcmp(all[i], name) != 0)
        i++;
    cr_assert(i < sizeof all / sizeof *all, "no optimizer '%s'", name);
    return (tp_optim_kind)i;
}

/* The configuration of "name=value ..." as Keras was given it. */
static inline tp_optim_config config_of(const char *name, const char *arguments)
{
    static const char *const bias = "bias";
    tp_optim_config config = tp_optim_defaults(kind_of(name));
    double value;
#define NUMBER(field, low, high, open, meaning)                                                    \
    if (tp_choice_number(arguments, #field, &value)) config.field = value;
#define FLAG(field, meaning)                                                                       \
    if (tp_choice_number(arguments, #field, &value)) config.field = value != 0;
    TP_OPTIMIZER_KEYS(NUMBER, FLAG)
    NUMBER(clipnorm, , , , )
    NUMBER(clipvalue, , , , )
    NUMBER(global_clipnorm, , , , )
    NUMBER(ema_momentum, , , , )
    FLAG(use_ema, )
#undef NUMBER
#undef FLAG
    if (tp_choice_number(arguments, "ema_overwrite_frequency", &value))
        config.ema_overwrite_frequency = (int64_t)value;
    if (strstr(arguments, "exclude=bias")) {
        config.excluded = &bias;
        config.excluded_count = 1;
    }
    return config;
}

#endif
