/* SPDX-License-Identifier: Apache-2.0
 * Options as tables. A row says where its value goes (an offset in the command's struct), so the
 * same table is parsed, printed as usage text and man page, and turned into shell completion. */
#ifndef TP_CLI_OPT_H
#define TP_CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum tp_opt_kind {
    TP_OPT_FLAG,  /* bool */
    TP_OPT_COUNT, /* int64_t, one more each time */
    TP_OPT_TEXT,  /* const char * */
    TP_OPT_INT,   /* int64_t from `min` to `max` */
    TP_OPT_LIST   /* tp_opt_list; may be given several times */
} tp_opt_kind;

typedef enum tp_opt_complete {
    TP_COMPLETE_NOTHING,
    TP_COMPLETE_FILE,
    TP_COMPLETE_FOLDER,
    TP_COMPLETE_TOPOLOGY,
    TP_COMPLETE_COMMAND
} tp_opt_complete;

typedef struct tp_opt_row {
    const char *name; /* without "--" */
    char letter;      /* 0: no short form */
    tp_opt_kind kind;
    const char *value; /* what the usage text calls it: "FILE"; NULL for flags */
    size_t offset;     /* of the target in the command's struct of values */
    int64_t min, max;
    tp_opt_complete complete;
    const char *help;
} tp_opt_row;

enum { TP_OPT_MAX_LIST = 64, TP_OPT_MAX_OPERANDS = 2048 };
typedef struct tp_opt_list {
    const char *items[TP_OPT_MAX_LIST];
    int32_t count;
} tp_opt_list;

typedef struct tp_opt_operands {
    const char *items[TP_OPT_MAX_OPERANDS];
    int count;
} tp_opt_operands;

enum { TP_OPT_ERROR_BYTES = 512 };

/* Reads argv[0..argc-1] (the command's name is not among them) by the rows of both tables; "--name
 * value", "--name=value", "-v", "-o value", "--" ends options. Strings are borrowed from argv. False with a
 * sentence in `out_error` when something is wrong; an unknown option names the nearest known one. */
bool tp_opt_parse(const tp_opt_row *common, const tp_opt_row *rows, int argc, char **argv,
                  void *values, tp_opt_operands *out_operands, char out_error[TP_OPT_ERROR_BYTES]);

/* The name with the fewest edits, or NULL when none is near. `get` gives names by index, then NULL. */
const char *tp_opt_nearest(const char *text, const char *(*get)(const void *user, int index),
                           const void *user);

#endif
