/* SPDX-License-Identifier: Apache-2.0
 * A command: one record in the table of main.c, from which dispatch, help, man page and completion
 * come. The records live in cmd_<name>.c; these see public headers only. */
#ifndef TP_CLI_CMD_H
#define TP_CLI_CMD_H

#include "exit.h"
#include "opt.h"

typedef struct tp_cmd tp_cmd;
struct tp_cmd {
    const char *name;
    const char *summary;  /* one line in the list of commands, no full stop */
    const char *operands; /* "CONFIG", "[TOPIC]"; "" when there are none */
    int min_operands, max_operands;
    tp_opt_complete complete;  /* what the operands are */
    const char *description;   /* paragraphs, separated by a blank line */
    const char *examples;      /* pairs of lines: the command line, then what it does */
    const tp_opt_row *options; /* ended by a NULL name; the common ones come on top */
    tp_exit (*run)(const tp_cmd *cmd, int argc, char **argv);
};

/* All commands in the order of help, ended by a NULL name. */
extern const tp_cmd *const tp_cmd_table[];
const tp_cmd *tp_cmd_find(const char *name);

/* What every command understands; the first member of its own struct of values. */
typedef struct tp_cmd_common {
    bool help;
    int64_t verbose;
    const char *json; /* file, or "-" */
} tp_cmd_common;
extern const tp_opt_row tp_cmd_common_options[];

/* Parses into `values`, which begins with a tp_cmd_common and holds the defaults. *out_exit is
 * set and false returned when the command is over already: help was asked for, usage is wrong,
 * or --json's file cannot be written. */
bool tp_cmd_begin(const tp_cmd *cmd, int argc, char **argv, void *values,
                  tp_opt_operands *out_operands, tp_exit *out_exit);

/* Prints the library's error record to standard error ("tpucl train: ...") and gives the exit code. */
tp_exit tp_cmd_fail(const tp_cmd *cmd, tpucl_status status);
/* The same for mistakes in the command line itself. */
tp_exit tp_cmd_fail_usage(const tp_cmd *cmd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True when --json names the regular file that `path` is: writing the result would destroy what is read. */
bool tp_cmd_would_replace(const tp_cmd_common *common, const char *path);
/* Writes a result to where --json says; a NULL `path` does nothing. */
tp_exit tp_cmd_write_json(const tp_cmd *cmd, const char *path, const char *text);
/* True when tables may go to standard output: unless --json has taken it. */
bool tp_cmd_wants_table(const tp_cmd_common *common);

extern const tp_cmd tp_cmd_devices, tp_cmd_verify, tp_cmd_check, tp_cmd_plan, tp_cmd_train,
    tp_cmd_eval, tp_cmd_profile, tp_cmd_bench, tp_cmd_tune, tp_cmd_import, tp_cmd_export,
    tp_cmd_inspect, tp_cmd_records, tp_cmd_help, tp_cmd_version;

#endif
