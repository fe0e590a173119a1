/* SPDX-License-Identifier: Apache-2.0
 * Every layer type, by the name of its tp_layer_type: X(dense) is tp_layer_dense. One row per constructor of
 * Keras, in the order of docs/layers.md. A new layer is a file and a row here.
 */
#ifndef TP_MODEL_LAYER_LIST_H
#define TP_MODEL_LAYER_LIST_H

/* clang-format off */
#define TP_LAYER_LIST(X)                                                                           \
    X(dense)                                                                                       \
    X(conv2d)                                                                                      \
    X(max_pooling2d)                                                                               \
    X(average_pooling2d)                                                                           \
    X(global_average_pooling2d)                                                                    \
    X(flatten)                                                                                     \
    X(reshape)                                                                                     \
    X(rescaling)                                                                                   \
    X(activation)                                                                                  \
    X(relu)                                                                                        \
    X(softmax)                                                                                     \
    X(identity)                                                                                    \
    X(dropout)                                                                                     \
    X(batch_normalization)                                                                         \
    X(conv1d)                                                                                      \
    X(conv3d)                                                                                      \
    X(max_pooling1d)                                                                               \
    X(average_pooling1d)                                                                           \
    X(max_pooling3d)                                                                               \
    X(average_pooling3d)                                                                           \
    X(global_max_pooling1d)                                                                        \
    X(global_max_pooling3d)                                                                        \
    X(global_average_pooling1d)                                                                    \
    X(global_average_pooling3d)                                                                    \
    X(zero_padding1d)                                                                              \
    X(zero_padding3d)                                                                              \
    X(cropping1d)                                                                                  \
    X(cropping3d)                                                                                  \
    X(up_sampling1d)                                                                               \
    X(up_sampling3d)                                                                               \
    X(normalization)                                                                               \
    X(resizing)                                                                                    \
    X(center_crop)                                                                                 \
    X(random_crop)                                                                                 \
    X(random_flip)                                                                                 \
    X(random_rotation)                                                                             \
    X(random_translation)                                                                          \
    X(random_zoom)                                                                                 \
    X(random_contrast)                                                                             \
    X(random_brightness)                                                                           \
    X(embedding)                                                                                   \
    X(einsum_dense)                                                                                \
    X(multi_head_attention)                                                                        \
    X(group_query_attention)                                                                       \
    X(attention)                                                                                   \
    X(additive_attention)                                                                          \
    X(time_distributed)                                                                            \
    X(layer_normalization)                                                                         \
    X(rms_normalization)                                                                           \
    X(group_normalization)                                                                         \
    X(unit_normalization)                                                                          \
    X(permute)                                                                                     \
    X(repeat_vector)                                                                               \
    X(masking)                                                                                     \
    X(activity_regularization)                                                                     \
    X(gaussian_noise)                                                                              \
    X(gaussian_dropout)                                                                            \
    X(alpha_dropout)                                                                               \
    X(spatial_dropout1d)                                                                           \
    X(spatial_dropout2d)                                                                           \
    X(spatial_dropout3d)                                                                           \
    X(lstm)                                                                                        \
    X(gru)                                                                                         \
    X(simple_rnn)                                                                                  \
    X(bidirectional)                                                                               \
    X(add)                                                                                         \
    X(subtract)                                                                                    \
    X(multiply)                                                                                    \
    X(average)                                                                                     \
    X(maximum)                                                                                     \
    X(minimum)                                                                                     \
    X(concatenate)                                                                                 \
    X(dot)                                                                                         \
    X(global_max_pooling2d)                                                                        \
    X(zero_padding2d)                                                                              \
    X(cropping2d)                                                                                  \
    X(up_sampling2d)                                                                               \
    X(leaky_relu)                                                                                  \
    X(elu)                                                                                         \
    X(prelu)                                                                                       \
    X(depthwise_conv2d)                                                                            \
    X(separable_conv2d)                                                                            \
    X(conv1d_transpose)                                                                            \
    X(conv2d_transpose)                                                                            \
    X(conv3d_transpose)
/* clang-format on */

#endif
