/* SPDX-License-Identifier: Apache-2.0
 * A trainer: a program's variables on the devices, and the steps that change them.
 * tpucl_trainer is thread-compatible. Its program must outlive it. */
#ifndef TPUCL_TRAINER_H
#define TPUCL_TRAINER_H

#include <tpucl/dataset.h>
#include <tpucl/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tpucl_trainer tpucl_trainer;

typedef struct tpucl_trainer_options {
    size_t struct_size;
    uint64_t seed; /* of initial values and of random ops */
} tpucl_trainer_options;

static inline tpucl_trainer_options tpucl_trainer_options_default(void)
{
    tpucl_trainer_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    return options;
}

typedef struct tpucl_metric {
    const char *name; /* borrowed from the program */
    double value;
} tpucl_metric;

typedef struct tpucl_step_result {
    uint64_t step;         /* steps done so far, this one included */
    int64_t example_count; /* of this call */
    double loss;           /* the metric "loss"; 0 when the graph has none */
    int32_t metric_count;
    const tpucl_metric *metrics; /* "loss" first, then in the order of tpucl_graph_metric; borrowed
                                    until the trainer's next call */
} tpucl_step_result;

TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_create(tpucl_program *program,
                                                             const tpucl_trainer_options *options,
                                                             tpucl_trainer **out_trainer);
/* Waits for outstanding work. */
TPUCL_API void tpucl_trainer_destroy(tpucl_trainer *trainer);

/* One step on a batch of (per-core batch * cores) examples; `out_result` may be NULL, and then the
 * call does not wait for the devices. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_step(tpucl_trainer *trainer,
                                                           const tpucl_batch *batch,
                                                           tpucl_step_result *out_result);
/* Up to `count` steps from a data set with one round trip at the end; fewer when the data ends
 * (TPUCL_END_OF_DATA when there was none at all). The result holds the last step's values. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_steps(tpucl_trainer *trainer,
                                                            tpucl_dataset *dataset, int64_t count,
                                                            tpucl_step_result *out_result);
/* Forward only, no update: means over every example of the data set once, from its beginning.
 * The last partial batch is padded and not miscounted. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_evaluate(tpucl_trainer *trainer,
                                                               tpucl_dataset *dataset,
                                                               tpucl_step_result *out_result);

/* A variable by name, row-major, in its own dtype. `byte_capacity` must be its exact size. What is
 * written has no subnormals afterwards. TPUCL_NOT_FOUND, TPUCL_INVALID_ARGUMENT for another size. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_read(tpucl_trainer *trainer, const char *name,
                                                           void *out_data, size_t byte_capacity);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_write(tpucl_trainer *trainer,
                                                            const char *name, const void *data,
                                                            size_t byte_count);
/* SHA-256 over the model's variables in name order: name, shape, values. Two trainings agree bit
 * for bit exactly when it is equal. 64 hexadecimal digits and a zero. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_params_sha256(tpucl_trainer *trainer,
                                                                    char out_hex[65]);
/* The model's variables as a safetensors file, replaced atomically, and back into every replica group. The
 * optimizer's state is not in it. Names, shapes and dtypes must be the program's: TPUCL_INVALID_CONFIG with
 * all differences; TPUCL_CORRUPT_DATA for a file that is none. Nothing is changed then. */
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_save(tpucl_trainer *trainer,
                                                           const char *path);
TPUCL_API TPUCL_MUST_CHECK tpucl_status tpucl_trainer_restore(tpucl_trainer *trainer,
                                                              const char *path);

#ifdef __cplusplus
}
#endif
#endif
