/* SPDX-License-Identifier: Apache-2.0
 * What every definition needs, so that no part of tpucl has to ask. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "ops/registry.h"

Test(registry, definitions_are_complete)
{
    const tp_op_table *table = tp_ops_registry();
    for (int32_t i = 0; i < table->count; ++i) {
        const tp_opdef *def = table->defs[i];
        cr_expect_eq(tp_op_table_find(table, def->name), def, "'%s' is there twice", def->name);
        cr_expect(def->doc && def->doc[strlen(def->doc) - 1] == '.', "'%s' has no sentence",
                  def->name);
        cr_expect(def->infer, "'%s' has no rule", def->name);
        cr_expect(def->min_inputs <= def->max_inputs && def->max_inputs <= TP_MAX_INPUTS, "'%s'",
                  def->name);
        const bool has_expression =
            def->op_class == TP_OP_ELEMENTWISE || def->op_class == TP_OP_RANDOM;
        cr_expect_eq(def->vpu != NULL, has_expression, "expression of '%s'", def->name);
        const bool is_fed = strcmp(def->name, "input") == 0 || strcmp(def->name, "variable") == 0 ||
                            def->op_class == TP_OP_COLLECTIVE;
        cr_expect_eq(def->evaluate == NULL, is_fed, "evaluation of '%s'", def->name);
        for (const tp_attr_spec *spec = def->attrs; spec && spec->name; ++spec)
            cr_expect(spec->doc && *spec->doc, "attribute '%s' of '%s' has no text", spec->name,
                      def->name);
    }
}

Test(registry, every_op_is_in_the_document)
{
    char *text;
    cr_assert_eq(tp_ops_markdown(&text), TPUCL_OK);
    const tp_op_table *table = tp_ops_registry();
    for (int32_t i = 0; i < table->count; ++i) {
        char heading[64];
        snprintf(heading, sizeof heading, "### %s\n", table->defs[i]->name);
        cr_expect(strstr(text, heading), "'%s' is missing: its class has no section",
                  table->defs[i]->name);
    }
    tp_free(text);
}
