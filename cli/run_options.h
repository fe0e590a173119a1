/* SPDX-License-Identifier: Apache-2.0
 * The options that train and eval share: which configuration, changed how, on what. */
#ifndef TP_CLI_RUN_OPTIONS_H
#define TP_CLI_RUN_OPTIONS_H

#include <tpucl/run.h>
#include "cmd.h"

typedef struct tp_run_values {
    tp_cmd_common common;
    tp_opt_list set;
    const char *topology, *device;
    int64_t split, wave_cores;
    bool synchronous;
    /* train alone */
    int64_t steps, epochs;
    const char *output_dir, *data, *resume_from;
    bool resume, overwrite;
    const char *params;  /* train and eval */
    const char *weights; /* train and check, of a Keras model */
    /* eval alone */
    const char *part;
    /* check alone */
    bool state;
} tp_run_values;

/* Rows for an option table that begins with a tp_run_values. */
#define TP_RUN_OPTION_ROWS                                                                         \
    {.name = "set",                                                                                \
     .kind = TP_OPT_LIST,                                                                          \
     .value = "KEY=VALUE",                                                                         \
     .offset = offsetof(tp_run_values, set),                                                       \
     .help = "change any key of the configuration ('optimizer.learning_rate=2e-3'); as often as "  \
             "needed; 'tpucl help config' lists them"},                                            \
        {.name = "topology",                                                                       \
         .kind = TP_OPT_TEXT,                                                                      \
         .value = "NAME|FILE",                                                                     \
         .offset = offsetof(tp_run_values, topology),                                              \
         .complete = TP_COMPLETE_TOPOLOGY,                                                         \
         .help = "the machine to be: a built-in one, or a JSON file"},                             \
        {.name = "device",                                                                         \
         .kind = TP_OPT_TEXT,                                                                      \
         .value = "SELECTOR",                                                                      \
         .offset = offsetof(tp_run_values, device),                                                \
         .help = "put all cores there instead of where the topology says; several with commas; "   \
                 "see 'tpucl help devices'"},                                                      \
        {.name = "split",                                                                          \
         .kind = TP_OPT_INT,                                                                       \
         .value = "N",                                                                             \
         .min = 1,                                                                                 \
         .max = 256,                                                                               \
         .offset = offsetof(tp_run_values, split),                                                 \
         .help = "cut the device into N equal sub-devices: other speed, same bits"},               \
        {.name = "wave-cores",                                                                     \
         .kind = TP_OPT_INT,                                                                       \
         .value = "N",                                                                             \
         .min = 1,                                                                                 \
         .max = 2048,                                                                              \
         .offset = offsetof(tp_run_values, wave_cores),                                            \
         .help = "at most N cores at once on a device; default as memory allows: same bits"},      \
    {                                                                                              \
        .name = "synchronous", .kind = TP_OPT_FLAG,                                                \
        .offset = offsetof(tp_run_values, synchronous),                                            \
        .help = "wait after every launch: slower, same bits; finds the launch that fails"          \
    }

/* Rows that some commands have. */
#define TP_RUN_OPTION_DATA                                                                         \
    {                                                                                              \
        .name = "data", .kind = TP_OPT_TEXT, .value = "DATASET",                                   \
        .offset = offsetof(tp_run_values, data), .help = "as --set data.dataset=DATASET"           \
    }
#define TP_RUN_OPTION_WEIGHTS                                                                      \
    {                                                                                              \
        .name = "weights", .kind = TP_OPT_TEXT, .value = "FILE", .complete = TP_COMPLETE_FILE,     \
        .offset = offsetof(tp_run_values, weights),                                                \
        .help = "of MODEL, when they are in a file of their own"                                   \
    }

/* The configuration file and the options as the library takes them; good until the next call. */
tpucl_run_options tp_run_settings(const tp_run_values *values, const char *config_file);

/* Creates the run from the configuration file and the options. */
tpucl_status tp_run_open(const tp_run_values *values, const char *config_file, tpucl_run **out_run);
/* The same from the text of a configuration. */
tpucl_status tp_run_open_text(const tp_run_values *values, const char *config_text,
                              tpucl_run **out_run);

/* What the configuration came to, on standard error. */
void tp_run_print_summary(const tpucl_run *run);

#endif
