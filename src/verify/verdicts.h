/* SPDX-License-Identifier: Apache-2.0
 * Which kernel variants a device may use: those that reproduced the contract's bits on it.
 *
 * A verdict is for a variant and a class of problems (kind of product, precision). It is found when it is
 * first asked for, by running the cases of kernel/mxu_cases.h that belong to the class, and kept on disk:
 *
 *   Key     SHA-256 over format version, tpucl version, device identity (name, driver, platform), build
 *           options and every kernel source. Whatever of these changes is asked again.
 *   File    <cache folder>/verdicts/<key>.json: {"format", "device", "verdicts": {"<variant> <class>":
 *           {"allowed", "reason"}}}; written aside and renamed, so that processes may race: the last
 *           writer's verdicts stay, a lost one is found again. A malformed file counts as absent.
 *
 * A tuning record's choice has a verdict of its own besides that of its variant, found on small products
 * like the one that it is for (tune/neighbour.h); its key is "choice <hash>".
 *
 * A check that failed for lack of device memory is no verdict on the bits: it counts while these are open and
 * is not kept.
 *
 * Thread-compatible.
 */
#ifndef TP_VERIFY_VERDICTS_H
#define TP_VERIFY_VERDICTS_H

#include "device/device.h"
#include "graph/graph.h"
#include "kernel/mxu.h"

typedef struct tp_verdicts tp_verdicts;

/* Called before a verdict is looked for on the device, and for each program that is compiled for it: the first use of
 * a device takes a while. `total` 0: not known yet. */
typedef void (*tp_verdicts_progress)(void *user, const char *variant, const char *problem_class,
                                     uint32_t done, uint32_t total);

/* `folder`: of the cache; NULL: verdicts are not kept. */
tpucl_status tp_verdicts_open(tp_device *device, const char *folder, tp_verdicts_progress progress,
                              void *user, tp_verdicts **out_verdicts);
void tp_verdicts_close(tp_verdicts *verdicts);

/* For tp_mxu_plan_create and tp_compile; valid while open. */
tp_mxu_allow tp_verdicts_allow(tp_verdicts *verdicts);

/* Whether a tuning record's choice is right for such a product: found out if it is not known, and kept. The text
 * is "" or what was wrong. Fails for lack of memory only. */
tpucl_status tp_verdicts_prove_choice(tp_verdicts *verdicts, const tp_mxu_problem *problem,
                                      const tp_mxu_choice *choice, bool *out_is_right,
                                      char out_text[256]);

/* What is known of a variant, or of a choice when one is given, without finding anything out. */
typedef enum tp_verdict_known {
    TP_VERDICT_UNKNOWN,
    TP_VERDICT_ALLOWED,
    TP_VERDICT_REFUSED
} tp_verdict_known;
tpucl_status tp_verdicts_look_up(tp_verdicts *verdicts, const char *variant,
                                 const tp_mxu_problem *problem, const tp_mxu_choice *choice,
                                 tp_verdict_known *out_known);

/* What looking for verdicts has taken since they were opened; reading the kept ones counts. */
double tp_verdicts_seconds(const tp_verdicts *verdicts);

/* TPUCL_NOT_EXACT, with the check that failed, when the device's generated kernels do not reproduce the
 * reference: the quick cases of verify/graph_cases.h and, where `graph` has memory ops, those with such ops;
 * run when first asked for and kept like any verdict. */
tpucl_status tp_verdicts_need_exact(tp_verdicts *verdicts, const tp_graph *graph);

#endif
