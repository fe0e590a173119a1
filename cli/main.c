/* SPDX-License-Identifier: Apache-2.0
 * The command line tool: the table of commands and dispatch. A command is one file, cmd_<name>.c,
 * with one row here. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "opt_text.h"

const tp_cmd *const tp_cmd_table[] = {
    &tp_cmd_devices, &tp_cmd_verify, &tp_cmd_check,   &tp_cmd_plan,
    &tp_cmd_train,   &tp_cmd_eval,   &tp_cmd_profile, &tp_cmd_bench,
    &tp_cmd_tune,    &tp_cmd_import, &tp_cmd_export,  &tp_cmd_inspect,
    &tp_cmd_records, &tp_cmd_help,   &tp_cmd_version, NULL,
};

const tp_cmd *tp_cmd_find(const char *name)
{
    for (int i = 0; tp_cmd_table[i]; ++i)
        if (!strcmp(tp_cmd_table[i]->name, name)) return tp_cmd_table[i];
    return NULL;
}

static const char *command_name(const void *user, int index)
{
    (void)user;
    return tp_cmd_table[index] ? tp_cmd_table[index]->name : NULL;
}

/* Output that never arrived is a failure, whatever the command thought of it. */
static tp_exit flush_output(tp_exit code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "tpucl: standard output could not be written\n");
    return code == TP_EXIT_DONE ? TP_EXIT_FAILED : code;
}

/* A standard stream that the caller closed: its number would be given to the next file that is opened, and
 * what is printed would end up in there. Opened the wrong way round, so that using it is an error still. */
static void reserve_standard_streams(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
        bool is_closed = fcntl(number, F_GETFD) < 0;
        if (is_closed && open("/dev/null", number ? O_RDONLY : O_WRONLY) != number) return;
    }
}

int main(int argc, char **argv)
{
    reserve_standard_streams();
    signal(SIGXFSZ,
           SIG_IGN); /* a limit on the size of files is a full disk: writing fails and says so */
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(name, "--version")) name = "version";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!*name) {
        tp_text_commands(stderr);
        return TP_EXIT_USAGE;
    }
    const tp_cmd *cmd = tp_cmd_find(name);
    if (!cmd) {
        const char *nearest = tp_opt_nearest(name, command_name, NULL);
        fprintf(stderr, "tpucl: unknown command '%s'%s%s%s ('tpucl help' lists them)\n", name,
                nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
        return TP_EXIT_USAGE;
    }
    return flush_output(cmd->run(cmd, argc - 2, argv + 2));
}
