/* SPDX-License-Identifier: Apache-2.0
 * What a tpucl_check_report holds, and how api_check.c and api_check_keras.c fill it.
 */
#ifndef TP_API_CHECK_INTERNAL_H
#define TP_API_CHECK_INTERNAL_H

#include <tpucl/tools.h>
#include "api/run_internal.h"
#include "check/check.h"

struct tpucl_check_report {
    tp_check_report *report;
    tpucl_check_summary summary;
};

tpucl_status tp_api_check_create(tpucl_check_report **out_report) TPUCL_MUST_CHECK;
/* What the rules find, and the summary but its numbers of findings. */
tpucl_status tp_api_check_input(const tp_check_input *input,
                                tpucl_check_report *report) TPUCL_MUST_CHECK;
/* The same of a session's training step. `train_examples`: 0 when nobody knows. */
tpucl_status tp_api_check_session(const tp_session *session, int64_t train_examples,
                                  tpucl_check_report *report) TPUCL_MUST_CHECK;
/* One example of zeros, owned by the source, with inputs and labels as the model and the configuration's losses want
 * them: for what is looked at without data. */
tpucl_status tp_api_make_example(const tp_model *model, const tp_config *config,
                                 tp_source **out_source) TPUCL_MUST_CHECK;
/* How many findings there are of each severity, into the summary. */
void tp_api_check_count(tpucl_check_report *report);

#endif
