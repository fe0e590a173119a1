/* SPDX-License-Identifier: Apache-2.0
 * What a run configuration chooses by name, and which keys of the group each choice has, with its defaults.
 * Names, arguments and defaults are those of Keras 3 where it has the thing. The layers that implement the
 * choices make their enums and tables from the same lists, so that a new optimizer is a row here and a file
 * there.
 *
 * A row's last column is "key=default ..." in the order of Keras' arguments. A default is JSON, null stands
 * for "none". A key that some row of the group lists belongs to the choices that list it, and is refused
 * with any other; a key that no row lists belongs to all of them.
 */
#ifndef TP_TOPO_CONFIG_CHOICES_H
#define TP_TOPO_CONFIG_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* X(ID, symbol, name, keys): docs/optimizers.md has the formulas. */
#define TP_OPTIMIZER_LIST(X)                                                                       \
    X(SGD, sgd, "SGD", "learning_rate=0.01 momentum=0 nesterov=false weight_decay=null")           \
    X(ADAM, adam, "Adam",                                                                          \
      "learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-7 amsgrad=false weight_decay=null")  \
    X(ADAMW, adamw, "AdamW",                                                                       \
      "learning_rate=0.001 weight_decay=0.004 beta_1=0.9 beta_2=0.999 epsilon=1e-7 amsgrad=false") \
    X(ADAMAX, adamax, "Adamax",                                                                    \
      "learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-7 weight_decay=null")                \
    X(NADAM, nadam, "Nadam",                                                                       \
      "learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-7 weight_decay=null")                \
    X(RMSPROP, rmsprop, "RMSprop",                                                                 \
      "learning_rate=0.001 rho=0.9 momentum=0 epsilon=1e-7 centered=false weight_decay=null")      \
    X(ADAGRAD, adagrad, "Adagrad",                                                                 \
      "learning_rate=0.001 initial_accumulator_value=0.1 epsilon=1e-7 weight_decay=null")          \
    X(ADADELTA, adadelta, "Adadelta",                                                              \
      "learning_rate=0.001 rho=0.95 epsilon=1e-7 weight_decay=null")                               \
    X(ADAFACTOR, adafactor, "Adafactor",                                                           \
      "learning_rate=0.001 beta_2_decay=-0.8 epsilon_1=1e-30 epsilon_2=1e-3 clip_threshold=1 "     \
      "relative_step=true weight_decay=null")                                                      \
    X(LION, lion, "Lion", "learning_rate=0.001 beta_1=0.9 beta_2=0.99 weight_decay=null")          \
    X(LAMB, lamb, "Lamb",                                                                          \
      "learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-7 weight_decay=null")                \
    X(LARS, lars, "LARS",                                                                          \
      "learning_rate=0.1 momentum=0.9 nesterov=false weight_decay=0.0001 trust_coefficient=0.001")

/* Keys that the rows above list. NUMBER(field, low, high, open, meaning): open 'l' or 'h' leaves that end of
 * the range out. FLAG(field, meaning). */
#define TP_OPTIMIZER_KEYS(NUMBER, FLAG)                                                            \
    NUMBER(learning_rate, 0, 1e6, 'l', "step size; 0, too, is the optimizer's default")            \
    NUMBER(momentum, 0, 1, 'h', "share of the last step that is kept")                             \
    FLAG(nesterov, "Nesterov's form of momentum")                                                  \
    NUMBER(beta_1, 0, 1, 'h', "decay of the mean of gradients")                                    \
    NUMBER(beta_2, 0, 1, 'h', "decay of the mean of squared gradients")                            \
    NUMBER(epsilon, 0, 1, 'l', "keeps the denominator from 0")                                     \
    FLAG(amsgrad, "divide by the largest mean of squares so far")                                  \
    NUMBER(rho, 0, 1, 'h', "decay of the mean of squared gradients")                               \
    FLAG(centered, "subtract the squared mean of gradients from the mean of squares")              \
    NUMBER(initial_accumulator_value, 0, 1e6, 0, "where the sums of squares begin")                \
    NUMBER(beta_2_decay, -1, 0, 'h', "the mean of squares keeps 1 - step^beta_2_decay of itself")  \
    NUMBER(epsilon_1, 0, 1, 'l', "added to squared gradients")                                     \
    NUMBER(epsilon_2, 0, 1, 'l', "least root mean square of a variable that scales its step")      \
    NUMBER(clip_threshold, 0, 1e6, 'l', "largest root mean square of an update before the rate")   \
    FLAG(relative_step, "of no effect, as in Keras: the rate is at most 1 / sqrt(step) anyway")    \
    NUMBER(trust_coefficient, 0, 1e6, 'l', "a layer's step is this share of its weights' norm")    \
    NUMBER(weight_decay, 0, 1e6, 0,                                                                \
           "weights lose this share, times the rate, in each step (LARS: added to the gradient)")

/* X(ID, symbol, name, keys). decay_steps: null is all steps of the run that are left after warm-up. */
#define TP_SCHEDULE_LIST(X)                                                                        \
    X(CONSTANT, constant, "constant", "")                                                          \
    X(COSINE, cosine, "cosine", "decay_steps=null alpha=0")                                        \
    X(COSINE_DECAY, cosine, "CosineDecay", "decay_steps=null alpha=0")                             \
    X(COSINE_RESTARTS, cosine_restarts, "CosineDecayRestarts",                                     \
      "first_decay_steps=null t_mul=2 m_mul=1 alpha=0")                                            \
    X(EXPONENTIAL, exponential, "ExponentialDecay",                                                \
      "decay_steps=null decay_rate=null staircase=false")                                          \
    X(INVERSE_TIME, inverse_time, "InverseTimeDecay",                                              \
      "decay_steps=null decay_rate=null staircase=false")                                          \
    X(POLYNOMIAL, polynomial, "PolynomialDecay",                                                   \
      "decay_steps=null end_learning_rate=0.0001 power=1 cycle=false")                             \
    X(PIECEWISE, piecewise, "PiecewiseConstantDecay", "boundaries=null values=null")

#define TP_SCHEDULE_KEYS(NUMBER, FLAG, COUNT)                                                      \
    COUNT(decay_steps, 0, 1 << 24, "steps that the decay takes; all of the run's when not given")  \
    COUNT(first_decay_steps, 0, 1 << 24, "steps until the first restart")                          \
    NUMBER(alpha, 0, 1, 0, "share of the rate that is left at the end")                            \
    NUMBER(t_mul, 1, 1e3, 0, "each period is so many times as long as the one before")             \
    NUMBER(m_mul, 0, 1e3, 0, "each period starts at this share of where the one before did")       \
    NUMBER(decay_rate, 0, 1e6, 'l', "what decay_steps steps do to the rate")                       \
    FLAG(staircase, "the rate changes every decay_steps steps only")                               \
    NUMBER(end_learning_rate, 0, 1e6, 0, "where the decay ends")                                   \
    NUMBER(power, 0, 1e3, 'l', "of the polynomial")                                                \
    FLAG(cycle, "begin a longer decay where one ends")

/* X(ID, symbol, name, keys): functions of keras.losses, and one's own; docs/losses.md has the formulas. Those with a
 * class_weight tell classes apart, and are reported with their accuracy unless metrics are given. */
#define TP_LOSS_LIST(X)                                                                            \
    X(SPARSE_CATEGORICAL_CROSSENTROPY, sparse_categorical_crossentropy,                            \
      "sparse_categorical_crossentropy", "from_logits=false ignore_class=null class_weight=null")  \
    X(CATEGORICAL_CROSSENTROPY, categorical_crossentropy, "categorical_crossentropy",              \
      "from_logits=false label_smoothing=0 class_weight=null")                                     \
    X(MEAN_SQUARED_ERROR, mean_squared_error, "mean_squared_error", "")                            \
    X(BINARY_CROSSENTROPY, binary_crossentropy, "binary_crossentropy",                             \
      "from_logits=false label_smoothing=0 class_weight=null")                                     \
    X(CATEGORICAL_FOCAL_CROSSENTROPY, categorical_focal_crossentropy,                              \
      "categorical_focal_crossentropy",                                                            \
      "alpha=0.25 gamma=2 from_logits=false label_smoothing=0 class_weight=null")                  \
    X(BINARY_FOCAL_CROSSENTROPY, binary_focal_crossentropy, "binary_focal_crossentropy",           \
      "apply_class_balancing=false alpha=0.25 gamma=2 from_logits=false label_smoothing=0 "        \
      "class_weight=null")                                                                         \
    X(MEAN_ABSOLUTE_ERROR, mean_absolute_error, "mean_absolute_error", "")                         \
    X(MEAN_ABSOLUTE_PERCENTAGE_ERROR, mean_absolute_percentage_error,                              \
      "mean_absolute_percentage_error", "")                                                        \
    X(MEAN_SQUARED_LOGARITHMIC_ERROR, mean_squared_logarithmic_error,                              \
      "mean_squared_logarithmic_error", "")                                                        \
    X(HUBER, huber, "huber", "delta=1")                                                            \
    X(LOG_COSH, log_cosh, "log_cosh", "")                                                          \
    X(HINGE, hinge, "hinge", "")                                                                   \
    X(SQUARED_HINGE, squared_hinge, "squared_hinge", "")                                           \
    X(CATEGORICAL_HINGE, categorical_hinge, "categorical_hinge", "class_weight=null")              \
    X(KL_DIVERGENCE, kl_divergence, "kl_divergence", "")                                           \
    X(POISSON, poisson, "poisson", "")                                                             \
    X(COSINE_SIMILARITY, cosine_similarity, "cosine_similarity", "")                               \
    X(DICE, dice, "dice", "")                                                                      \
    X(TVERSKY, tversky, "tversky", "alpha=0.5 beta=0.5")                                           \
    X(EXPRESSION, expression, "expression", "expression=null")

/* Those but from_logits, class_weight and expression. */
#define TP_LOSS_KEYS(NUMBER, FLAG)                                                                 \
    NUMBER(label_smoothing, 0, 1, 0, "share of each label that is spread over all classes")        \
    NUMBER(ignore_class, -2147483648.0, 2147483647.0, 0,                                           \
           "elements with this label count for nothing, neither in loss nor in metrics")           \
    NUMBER(alpha, 0, 1e3, 0, "focal: weight of the loss; tversky: of false negatives")             \
    NUMBER(gamma, 0, 1e3, 0, "how little the elements count that are right anyway")                \
    FLAG(apply_class_balancing, "weigh class 1 by alpha, class 0 by 1 - alpha")                    \
    NUMBER(delta, 0, 1e30, 'l', "where the square becomes a line")                                 \
    NUMBER(beta, 0, 1e3, 0, "weight of false positives")

/* X(ID, symbol, name): Keras' metrics by their default names; docs/metrics.md has the formulas. */
#define TP_METRIC_LIST(X)                                                                          \
    X(ACCURACY, accuracy, "accuracy")                                                              \
    X(BINARY_ACCURACY, binary_accuracy, "binary_accuracy")                                         \
    X(CATEGORICAL_ACCURACY, categorical_accuracy, "categorical_accuracy")                          \
    X(SPARSE_CATEGORICAL_ACCURACY, categorical_accuracy, "sparse_categorical_accuracy")            \
    X(TOP_K_CATEGORICAL_ACCURACY, top_k_accuracy, "top_k_categorical_accuracy")                    \
    X(SPARSE_TOP_K_CATEGORICAL_ACCURACY, top_k_accuracy, "sparse_top_k_categorical_accuracy")      \
    X(AUC, auc, "auc")                                                                             \
    X(PRECISION, precision, "precision")                                                           \
    X(RECALL, recall, "recall")                                                                    \
    X(F1_SCORE, f1_score, "f1_score")                                                              \
    X(MEAN_SQUARED_ERROR, mean_squared_error, "mean_squared_error")                                \
    X(MEAN_ABSOLUTE_ERROR, mean_absolute_error, "mean_absolute_error")                             \
    X(ROOT_MEAN_SQUARED_ERROR, root_mean_squared_error, "root_mean_squared_error")                 \
    X(COSINE_SIMILARITY, cosine_similarity, "cosine_similarity")                                   \
    X(IO_U, iou, "io_u")                                                                           \
    X(MEAN_IO_U, iou, "mean_io_u")                                                                 \
    X(EXPRESSION, expression, "expression")

/* clang-format on */

/* The text of `key`'s default in the list of a row, or NULL: the choice has no such key. */
const char *tp_choice_find(const char *keys, const char *key, size_t *out_length);

/* The number of that default: 1 and 0 for true and false, NaN for null. False: no such key. */
bool tp_choice_number(const char *keys, const char *key, double *out_value);

#endif
