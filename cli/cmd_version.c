/* SPDX-License-Identifier: Apache-2.0
 * tpucl version: which library, which contract. */
#include <stdio.h>
#include <tpucl/version.h>
#include "cmd.h"

typedef struct version_values {
    tp_cmd_common common;
} version_values;

static const tp_opt_row options[] = {{.name = NULL}};

static tp_exit run_version(const tp_cmd *cmd, int argc, char **argv)
{
    version_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (tp_cmd_wants_table(&values.common))
        printf("tpucl %s (numeric contract %d)\n", tpucl_version_string(), TPUCL_CONTRACT_VERSION);
    char json[128];
    snprintf(json, sizeof json, "{\n  \"version\": \"%s\",\n  \"contract\": %d\n}\n",
             tpucl_version_string(), TPUCL_CONTRACT_VERSION);
    return tp_cmd_write_json(cmd, values.common.json, json);
}

const tp_cmd tp_cmd_version = {
    .name = "version",
    .summary = "print the version and the number of the numeric contract",
    .operands = "",
    .description =
        "Prints the version of the library and the number of the numeric contract. Results of "
        "two versions agree bit for bit exactly when that number is the same.",
    .examples = "tpucl version\nthe version",
    .options = options,
    .run = run_version,
};
