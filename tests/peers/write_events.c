/* SPDX-License-Identifier: Apache-2.0
 * Writes a run for check_records.py: write_events FOLDER. Ten steps of every kind of summary; then the run ends as if it
 * was killed behind step 9, and a second file goes on from step 5. */
#include <stdio.h>
#include "core/str.h"
#include "io/event_file.h"
#include "io/event_summary.h"
#include "io/image.h"

enum { STEPS = 10, RESTART = 5 };

static tpucl_status put_step(tp_event_file *file, int64_t step, float loss)
{
    tp_str_builder summary = {0}, png = {0};
    uint8_t pixels[4 * 6];
    float values[100];
    tp_histogram histogram;
    for (int i = 0; i < 24; i++)
        pixels[i] = (uint8_t)(10 * i + step);
    for (int i = 0; i < 100; i++)
        values[i] = (float)i / 10 + (float)step;
    tpucl_status status = tp_png_encode(pixels, 6, 4, 1, 0, &png);
    if (status == TPUCL_OK) {
        const tp_view images[2] = {{png.data, png.length}, {png.data, png.length}};
        tp_histogram_of(values, 100, &histogram);
        tp_summary_scalar(&summary, "loss", loss);
        tp_summary_images(&summary, "batch", 6, 4, images, 2);
        tp_summary_histogram(&summary, "weights", &histogram);
        if (step == 0) tp_summary_text(&summary, "note", "**bold**");
        status = summary.status;
    }
    if (status == TPUCL_OK)
        status = tp_event_file_put(file, tp_event_wall_seconds(), step,
                                   (tp_view){summary.data, summary.length});
    tp_str_builder_deinit(&summary);
    tp_str_builder_deinit(&png);
    return status;
}

static tpucl_status put_hparams(tp_event_file *file)
{
    static const tp_hparam hparams[] = {{"optimizer", "Adam", 0}, {"learning_rate", NULL, 0.001}};
    static const char *const metrics[] = {"loss"};
    tp_str_builder summary = {0};
    tp_summary_hparams_experiment(&summary, hparams, 2, metrics, 1);
    tp_summary_hparams_start(&summary, hparams, 2, "run", 1000);
    tp_summary_hparams_end(&summary, true, 2000);
    tpucl_status status = summary.status;
    if (status == TPUCL_OK)
        status = tp_event_file_put(file, tp_event_wall_seconds(), 0,
                                   (tp_view){summary.data, summary.length});
    tp_str_builder_deinit(&summary);
    return status;
}

static tpucl_status write_run(const char *folder, bool is_restart)
{
    tp_event_file *file = NULL;
    TP_TRY(tp_event_file_open(folder, is_restart ? RESTART : 0, &file));
    tpucl_status status = is_restart ? TPUCL_OK : put_hparams(file);
    for (int64_t step = is_restart ? RESTART : 0; status == TPUCL_OK && step < STEPS; step++)
        status = put_step(file, step, (float)step / 4 + (is_restart ? 100 : 0));
    if (status == TPUCL_OK) return tp_event_file_close(file);
    tp_event_file_abandon(file);
    return status;
}

int main(int argc, char **argv)
{
    tpucl_status status = TPUCL_INVALID_ARGUMENT;
    if (argc == 2) {
        status = write_run(argv[1], false);
        if (status == TPUCL_OK) status = write_run(argv[1], true);
    }
    if (status != TPUCL_OK) fprintf(stderr, "write_events: %s\n", tpucl_last_error()->message);
    return status != TPUCL_OK;
}
