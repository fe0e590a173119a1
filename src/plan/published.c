/* SPDX-License-Identifier: Apache-2.0
 * See published.h. What was published in other units was turned into examples per second: hours between two epochs of
 * 1,281,167 pictures (DAWNBench), seconds between two events of the log, evaluation included (MLPerf).
 */
#include "plan/published.h"

#include <math.h>
#include <string.h>
#include "core/embedded.h"
#include "plan/project.h"

extern const tp_embedded_file tp_embedded_published[];

static const char tensorflow_2017[] =
    "tensorflow/tensorflow, tensorflow/docs_src/performance/benchmarks.md (May 2017)";
static const char dawn[] = "stanford-futuredata/dawn-bench-entries";
static const char mlperf[] = "mlcommons/training_results_v0.5";

#define K80(model, count, batch, value)                                                            \
    {                                                                                              \
        model, "k80", count, batch, false, false, value, tensorflow_2017                           \
    }

static const tp_published_row rows[] = {
    K80("inception-v3", 1, 64, 30.5),
    K80("inception-v3", 2, 64, 57.8),
    K80("inception-v3", 4, 64, 116),
    K80("inception-v3", 8, 64, 227),
    K80("resnet-50", 1, 64, 51.9),
    K80("resnet-50", 2, 64, 99.0),
    K80("resnet-50", 4, 64, 195),
    K80("resnet-50", 8, 64, 387),
    K80("resnet-152", 1, 32, 20.0),
    K80("resnet-152", 2, 32, 38.2),
    K80("resnet-152", 4, 32, 75.8),
    K80("resnet-152", 8, 32, 148),
    K80("alexnet", 1, 512, 656),
    K80("alexnet", 2, 512, 1209),
    K80("alexnet", 4, 512, 2328),
    K80("alexnet", 8, 512, 4640),
    K80("vgg-16", 1, 32, 35.4),
    K80("vgg-16", 2, 32, 64.8),
    K80("vgg-16", 4, 32, 120),
    K80("vgg-16", 8, 32, 234),
    {"resnet-50", "v2-8", 1, 128, true, false, 2220, dawn},
    {"resnet-50", "v2-8", 1, 128, true, false, 3264, dawn},
    {"resnet-50", "v2-8", 1, 128, true, false, 4016, dawn},
    {"resnet-50", "v2-8", 1, 128, true, false, 4418, mlperf},
    {"resnet-50", "v3-8", 1, 128, true, false, 7312, mlperf},
    {"resnet-50", "v2-8", 1, 128, true, true, 1334, "pytorch/xla issue 3491: f32 inputs"},
    {"resnet-50", "v2-8", 1, 128, true, false, 3186, "news.ycombinator.com, item 16931394"},
    {"resnet-50", "v100", 4, 64, true, false, 3128, "news.ycombinator.com, item 16931394"},
    {"resnet-50", "machines/xeon-8180.json", 1, 32, false, false, 133, mlperf},
    {"resnet-50", "machines/c5.18xlarge.json", 64, 32, false, false, 4648, dawn},
    {"resnet-164", "machines/n1-standard-16.json", 1, 128, false, false, 19.8, dawn},
    {"resnet-164", "k80", 1, 128, false, false, 206, dawn},
    {"resnet-164", "k80", 1, 128, false, false, 211, dawn},
    {"resnet-164", "p100", 1, 128, false, false, 634, dawn},
    {"gnmt", "v2-8", 1, 256, true, false, 3366, mlperf},
    {"gnmt", "v3-8", 1, 256, true, false, 5162, mlperf},
    {"gnmt", "v100", 8, 1024, true, false, 9729, mlperf},
    {.model = NULL},
};

const tp_published_row *tp_published_row_at(int32_t index)
{
    const int32_t last = (int32_t)(sizeof rows / sizeof rows[0]) - 1;
    return &rows[index < 0 || index > last ? last : index];
}

const char *tp_published_file(const char *name)
{
    for (const tp_embedded_file *file = tp_embedded_published; file->name; file++)
        if (strcmp(file->name, name) == 0) return file->text;
    return NULL;
}

/* ---- the paper of 2017 ---- */

static const char isca[] = "Jouppi et al., ISCA 2017, table 3";
static const char latency[] = "Jouppi et al., ISCA 2017, table 4";

/* MLP0 has 20 M weights, 40 M operations an example. Two operations a weight and example. */
#define TPU_V1(app, per_byte, per_example, value, source)                                          \
    {                                                                                              \
        app, "tpu v1", per_byte, 92e12, 34e9, per_example, value, 0.79, source                     \
    }

static const tp_paper_row paper[] = {
    TPU_V1("MLP0", 2 * 200, 0, 12.3e12, isca),
    TPU_V1("LSTM0", 2 * 64, 0, 3.7e12, isca),
    TPU_V1("CNN0", 2 * 2888, 0, 86.0e12, isca),
    TPU_V1("MLP0, 200 a batch", 2 * 200, 40e6, 225000, latency),
    TPU_V1("MLP0, 250 a batch", 2 * 250, 40e6, 280000, latency),
    {"MLP0, 16 a batch", "haswell die", 2 * 16 / 4.0, 1.3e12, 51e9, 40e6, 5482, 0, latency},
    {"MLP0, 64 a batch", "haswell die", 2 * 64 / 4.0, 1.3e12, 51e9, 40e6, 13194, 0, latency},
    {.app = NULL},
};

const tp_paper_row *tp_paper_row_at(int32_t index)
{
    const int32_t last = (int32_t)(sizeof paper / sizeof paper[0]) - 1;
    return &paper[index < 0 || index > last ? last : index];
}

double tp_paper_project(const tp_paper_row *row)
{
    const double efficiency =
        row->efficiency > 0 ? row->efficiency : tp_machine_efficiency(TP_MACHINE_CPU);
    const double ops = efficiency * fmin(row->peak, row->ops_per_byte * row->bandwidth);
    return row->ops_per_example > 0 ? ops / row->ops_per_example : ops;
}
