/* SPDX-License-Identifier: Apache-2.0
 * What all commands share: the common options, the way a command begins and fails, and writing the
 * JSON result. */
#include "cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tpucl/tools.h>
#include "opt_text.h"
#include "ui.h"

const tp_opt_row tp_cmd_common_options[] = {
    {.name = "json",
     .kind = TP_OPT_TEXT,
     .value = "FILE",
     .complete = TP_COMPLETE_FILE,
     .offset = offsetof(tp_cmd_common, json),
     .help =
         "write the result there as JSON; '-' is standard output, which then holds nothing else"},
    {.name = "verbose",
     .letter = 'v',
     .kind = TP_OPT_COUNT,
     .offset = offsetof(tp_cmd_common, verbose),
     .help = "say more on standard error; twice for debugging"},
    {.name = "help",
     .letter = 'h',
     .kind = TP_OPT_FLAG,
     .offset = offsetof(tp_cmd_common, help),
     .help = "this text"},
    {.name = NULL},
};

static int64_t verbosity; /* of the command that runs, for the trail of errors */

tp_exit tp_exit_of_status(tpucl_status status)
{
    switch (status) {
    case TPUCL_OK:
        return TP_EXIT_DONE;
    case TPUCL_INVALID_ARGUMENT: /* what the user typed or wrote can never be right */
    case TPUCL_INVALID_CONFIG:
    case TPUCL_NOT_FOUND:
        return TP_EXIT_USAGE;
    case TPUCL_NO_DEVICE:
        return TP_EXIT_NO_DEVICE;
    case TPUCL_OUT_OF_DEVICE_MEMORY:
        return TP_EXIT_DEVICE_MEMORY;
    case TPUCL_INTERRUPTED:
        return TP_EXIT_INTERRUPTED;
    default:
        return TP_EXIT_FAILED;
    }
}

tp_exit tp_cmd_fail(const tp_cmd *cmd, tpucl_status status)
{
    tp_ui_progress_clear();
    const tpucl_error *error = tpucl_last_error();
    fprintf(stderr, "%stpucl %s:%s %s\n", tp_ui_red(stderr), cmd->name, tp_ui_plain(stderr),
            error->message);
    if (verbosity > 0) {
        fprintf(stderr, "%s", tpucl_status_name(status));
        if (error->foreign_code) fprintf(stderr, " (code %lld)", (long long)error->foreign_code);
        fprintf(stderr, " in\n%s\n", error->trail);
    }
    return tp_exit_of_status(status);
}

tp_exit tp_cmd_fail_usage(const tp_cmd *cmd, const char *format, ...)
{
    va_list arguments;
    tp_ui_progress_clear();
    fprintf(stderr, "%stpucl %s:%s ", tp_ui_red(stderr), cmd->name, tp_ui_plain(stderr));
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n'tpucl help %s' explains its options\n", cmd->name);
    return TP_EXIT_USAGE;
}

bool tp_cmd_would_replace(const tp_cmd_common *common, const char *path)
{
    struct stat result, other;
    return common->json && path && stat(common->json, &result) == 0 && S_ISREG(result.st_mode) &&
           stat(path, &other) == 0 && result.st_dev == other.st_dev &&
           result.st_ino == other.st_ino;
}

bool tp_cmd_begin(const tp_cmd *cmd, int argc, char **argv, void *values,
                  tp_opt_operands *out_operands, tp_exit *out_exit)
{
    char error[TP_OPT_ERROR_BYTES];
    tp_cmd_common *common = values;
    *out_exit = TP_EXIT_USAGE;
    bool parsed =
        tp_opt_parse(tp_cmd_common_options, cmd->options, argc, argv, values, out_operands, error);
    if (common->help) { /* also when something else is wrong: that is why one asks */
        tp_text_command(stdout, cmd);
        *out_exit = TP_EXIT_DONE;
        return false;
    }
    if (!parsed) {
        *out_exit = tp_cmd_fail_usage(cmd, "%s", error);
        return false;
    }
    if (out_operands->count < cmd->min_operands || out_operands->count > cmd->max_operands) {
        bool too_many = out_operands->count > cmd->max_operands;
        *out_exit = too_many ? tp_cmd_fail_usage(cmd, "unexpected argument '%s'",
                                                 out_operands->items[cmd->max_operands])
                             : tp_cmd_fail_usage(cmd, "%s is missing", cmd->operands);
        return false;
    }
    verbosity = common->verbose;
    if (!tp_ui_begin(common->verbose)) return false;
    for (int i = 0; i < out_operands->count; ++i) {
        if (!tp_cmd_would_replace(common, out_operands->items[i])) continue;
        *out_exit = tp_cmd_fail_usage(cmd, "--json '%s' would replace %s, which is read",
                                      common->json, cmd->operands);
        return false;
    }
    if (common->json && strcmp(common->json, "-") != 0) { /* before long work, not after it */
        tpucl_status status = tpucl_file_can_write(common->json);
        if (status != TPUCL_OK) {
            *out_exit = tp_cmd_fail(cmd, status);
            return false;
        }
    }
    *out_exit = TP_EXIT_DONE;
    return true;
}

bool tp_cmd_wants_table(const tp_cmd_common *common)
{
    return !common->json || strcmp(common->json, "-") != 0;
}

tp_exit tp_cmd_write_json(const tp_cmd *cmd, const char *path, const char *text)
{
    if (!path) return TP_EXIT_DONE;
    if (!strcmp(path, "-")) {
        if (fputs(text, stdout) >= 0 && fflush(stdout) == 0) return TP_EXIT_DONE;
        fprintf(stderr, "tpucl %s: standard output could not be written\n", cmd->name);
        return TP_EXIT_FAILED;
    }
    tpucl_status status = tpucl_file_write(path, text, strlen(text));
    return status == TPUCL_OK ? TP_EXIT_DONE : tp_cmd_fail(cmd, status);
}
