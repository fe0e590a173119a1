/* SPDX-License-Identifier: Apache-2.0
 * tpucl help: the list of commands, one command, the configuration keys, the environment; and, for
 * packagers, the same tables as man pages and completion scripts. */
#include <stdio.h>
#include <string.h>
#include <tpucl/tools.h>
#include "cmd.h"
#include "opt_text.h"

typedef struct help_values {
    tp_cmd_common common;
    bool man, bash, zsh;
} help_values;

static const tp_opt_row options[] = {
    {.name = "man",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(help_values, man),
     .help = "as a man page"},
    {.name = "bash",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(help_values, bash),
     .help = "the completion script for bash"},
    {.name = "zsh",
     .kind = TP_OPT_FLAG,
     .offset = offsetof(help_values, zsh),
     .help = "the completion script for zsh"},
    {.name = NULL},
};

static tp_exit print_config_keys(const tp_cmd *cmd)
{
    char *text = NULL;
    tpucl_status status = tpucl_config_help(&text);
    if (status != TPUCL_OK) return tp_cmd_fail(cmd, status);
    fputs(text, stdout);
    tpucl_free(text);
    return TP_EXIT_DONE;
}

static void print_environment(void)
{
    for (int32_t i = 0; tpucl_environment_at(i).name; ++i) {
        tpucl_environment_variable variable = tpucl_environment_at(i);
        printf("%s=%s\n    %s\n", variable.name, variable.value, variable.meaning);
    }
}

static tp_exit run_help(const tp_cmd *cmd, int argc, char **argv)
{
    help_values values = {0};
    tp_opt_operands operands;
    tp_exit code;
    if (!tp_cmd_begin(cmd, argc, argv, &values, &operands, &code)) return code;
    if (values.bash || values.zsh) {
        (values.bash ? tp_text_bash : tp_text_zsh)(stdout);
        return TP_EXIT_DONE;
    }
    const char *topic = operands.count ? operands.items[0] : NULL;
    if (!topic) {
        (values.man ? tp_text_man : tp_text_commands)(stdout);
        return TP_EXIT_DONE;
    }
    if (!strcmp(topic, "config")) return print_config_keys(cmd);
    if (!strcmp(topic, "environment")) {
        print_environment();
        return TP_EXIT_DONE;
    }
    const tp_cmd *wanted = tp_cmd_find(topic);
    if (!wanted)
        return tp_cmd_fail_usage(cmd,
                                 "no command or topic is called '%s'; topics besides the "
                                 "commands are 'config' and 'environment'",
                                 topic);
    (values.man ? tp_text_man_command : tp_text_command)(stdout, wanted);
    return TP_EXIT_DONE;
}

const tp_cmd tp_cmd_help = {
    .name = "help",
    .summary = "explain a command, the keys of a configuration, the environment",
    .operands = "[COMMAND|config|environment]",
    .max_operands = 1,
    .complete = TP_COMPLETE_COMMAND,
    .description =
        "Without an argument it lists the commands. 'config' lists every key of a run's "
        "configuration with type, default and range; 'environment' the variables that are read.\n\n"
        "Man pages and completion scripts are made from the same tables.",
    .examples = "tpucl help train\nwhat train does and its options\n"
                "tpucl help config\nall keys for a configuration file and for --set\n"
                "source <(tpucl help --bash)\ncompletion in this shell",
    .options = options,
    .run = run_help,
};
