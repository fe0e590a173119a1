# SPDX-License-Identifier: Apache-2.0
# Recurrent layers, their wrapper, and what has no gradient of its own to compare in the other files. SimpleRNN is
# unrolled, because Keras' loop over JAX refuses its mixture of dtypes.
MASKED = [{"type": "Embedding", "input_dim": 6, "output_dim": 3, "mask_zero": True}]

CASES = [
    {"name": "lstm", "inputs": {"x": [5, 3]},
     "model": {"layers": [{"type": "LSTM", "units": 4, "return_sequences": True}, {"type": "LSTM", "units": 3},
                          {"type": "Dense", "units": 2}]}},
    {"name": "lstm_mask", "inputs": {"x": {"shape": [6], "limit": 6}},
     "model": {"layers": MASKED + [{"type": "LSTM", "units": 4, "return_sequences": True},
                                   {"type": "LSTM", "units": 3, "go_backwards": True}]}},
    {"name": "gru", "inputs": {"x": [5, 3]},
     "model": {"layers": [{"type": "GRU", "units": 4, "return_sequences": True},
                          {"type": "GRU", "units": 3, "reset_after": False}, {"type": "Dense", "units": 2}]}},
    {"name": "simple_rnn", "inputs": {"x": [5, 3]},
     "model": {"layers": [{"type": "SimpleRNN", "unroll": True, "units": 4, "return_sequences": True},
                          {"type": "SimpleRNN", "unroll": True, "units": 3, "activation": "relu"}]}},
    {"name": "bidirectional", "inputs": {"x": [5, 3]},
     "model": {"layers": [{"type": "Bidirectional", "layer": {"type": "LSTM", "units": 3, "return_sequences": True}},
                          {"type": "Bidirectional", "merge_mode": "sum", "layer": {"type": "GRU", "units": 2}}]}},
    {"name": "bidirectional_mask", "inputs": {"x": {"shape": [6], "limit": 6}},
     "model": {"layers": MASKED + [{"type": "Bidirectional", "merge_mode": "mul",
                                    "layer": {"type": "SimpleRNN", "unroll": True, "units": 3}}]}},
    {"name": "reshape", "inputs": {"x": [4, 3]},
     "model": {"layers": [{"type": "Dense", "units": 6}, {"type": "Reshape", "target_shape": [2, -1, 3]},
                          {"type": "Dense", "units": 2}]}},
    # In training, too, everything goes through.
    {"name": "noise_off", "inputs": {"x": [4, 3]},
     "model": {"layers": [{"type": "Dense", "units": 3}, {"type": "GaussianNoise", "stddev": 0.0},
                          {"type": "GaussianDropout", "rate": 0.0}, {"type": "AlphaDropout", "rate": 0.0},
                          {"type": "SpatialDropout1D", "rate": 0.0}, {"type": "Dropout", "rate": 0.0}]}},
    {"name": "noise_off_images", "inputs": {"x": [4, 3, 2]},
     "model": {"layers": [{"type": "Dense", "units": 3}, {"type": "SpatialDropout2D", "rate": 0.0},
                          {"type": "Reshape", "target_shape": [4, 3, 1, 3]},
                          {"type": "SpatialDropout3D", "rate": 0.0}]}},
    {"name": "noise_images", "inputs": {"x": [4, 3, 2]}, "training": False,
     "model": {"layers": [{"type": "Dense", "units": 3}, {"type": "SpatialDropout2D", "rate": 0.5},
                          {"type": "Reshape", "target_shape": [4, 3, 1, 3]},
                          {"type": "SpatialDropout3D", "rate": 0.5}]}},
    # A crop as large as the image has no choice in training either; a smaller one is in tests/unit/model/
    # test_layer_random.c, because Keras 3.15 leaves the images as they are when it predicts. A flip is seen here in
    # prediction alone.
    {"name": "crop_whole", "inputs": {"x": [4, 3, 2]},
     "model": {"layers": [{"type": "Dense", "units": 3}, {"type": "RandomCrop", "height": 4, "width": 3}]}},
    {"name": "flip", "inputs": {"x": [4, 3, 2]}, "training": False,
     "model": {"layers": [{"type": "Dense", "units": 3}, {"type": "RandomFlip"}]}},
]
