/* SPDX-License-Identifier: Apache-2.0
 * Classes of layers: their names here, and what has no equal, each with what a TPU would do about it and a remedy.
 */
#include <ctype.h>
#include <string.h>
#include "keras/map_internal.h"

/* Other names of the same layer, in old files and in packages. */
static const struct {
    const char *keras, *here;
} aliases[] = {
    {"Convolution1D", "Conv1D"},
    {"Convolution2D", "Conv2D"},
    {"Convolution2DTranspose", "Conv2DTranspose"},
    {"SeparableConvolution2D", "SeparableConv2D"},
    {"MaxPool1D", "MaxPooling1D"},
    {"MaxPool2D", "MaxPooling2D"},
    {"AvgPool1D", "AveragePooling1D"},
    {"AvgPool2D", "AveragePooling2D"},
    {"GlobalAvgPool1D", "GlobalAveragePooling1D"},
    {"GlobalAvgPool2D", "GlobalAveragePooling2D"},
    {"GlobalMaxPool1D", "GlobalMaxPooling1D"},
    {"GlobalMaxPool2D", "GlobalMaxPooling2D"},
    {"BatchNormalizationV1", "BatchNormalization"},
    {"BatchNormalizationV2", "BatchNormalization"},
    {"LSTMV2", "LSTM"},
    {"GRUV2", "GRU"},
};

const char *tp_keras_type(const tp_keras_row *row)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(row->kind, aliases[i].keras) == 0) return aliases[i].here;
    return row->kind;
}

typedef struct refusal {
    const char *kind; /* Keras' class, or the function of a TFOpLambda or of keras.ops */
    tp_keras_rule rule;
    const char *what, *remedy;
} refusal;

static const char python_remedy[] =
    "replace it by the layers that do the same (Rescaling, Activation, Multiply, Reshape, ...), or "
    "a "
    "custom loss by an expression: see 'Custom losses' in docs/layers.md";
static const char host_remedy[] = "do this while preparing the data, and feed its result";

static const refusal classes[] = {
    {"Lambda", TP_KERAS_PYTHON, "it is Python code, which is never run", python_remedy},
    {"SlicingOpLambda", TP_KERAS_LAYER, "it is a slice by Python's index",
     "use Cropping1D, Cropping2D or a Reshape"},
    {"TensorFlowOpLayer", TP_KERAS_LAYER, "it is a TensorFlow operation",
     "use the layer that does the same (Add, Multiply, Reshape, Activation, ...)"},
    {"TFSMLayer", TP_KERAS_PYTHON, "it is a SavedModel inside a layer",
     "give the layers themselves"},
    {"TorchModuleWrapper", TP_KERAS_PYTHON, "it is a PyTorch module", "give the layers themselves"},
    {"JaxLayer", TP_KERAS_PYTHON, "it is a JAX function", "give the layers themselves"},
    {"FlaxLayer", TP_KERAS_PYTHON, "it is a Flax module", "give the layers themselves"},
    {"StringLookup", TP_KERAS_TEXT,
     "a TPU has no strings, the host would look them up for each batch; tensors here hold no text",
     host_remedy},
    {"TextVectorization", TP_KERAS_TEXT,
     "a TPU has no strings, the host would split them for each batch; tensors here hold no text",
     host_remedy},
    {"Hashing", TP_KERAS_TEXT, "a TPU has no strings to hash; tensors here hold no text",
     host_remedy},
    {"HashedCrossing", TP_KERAS_TEXT, "a TPU has no strings to hash; tensors here hold no text",
     host_remedy},
    {"IntegerLookup", TP_KERAS_TABLE,
     "its table grows with the data and stays on the host; there is none here", host_remedy},
    {"Discretization", TP_KERAS_TABLE,
     "its bins come from the data and stay on the host; there are none here", host_remedy},
    {"CategoryEncoding", TP_KERAS_TABLE, "it is done on the host; there is no such layer here",
     "feed class numbers to an Embedding, or feed what it gives"},
};

#define MASK(function)                                                                             \
    {                                                                                              \
        function, TP_KERAS_LAYER, "it makes a mask, which no layer here does",                     \
            "let a layer mask (Masking, mask_zero of an Embedding, ReLU), or feed the mask; in a " \
            "loss or a "                                                                           \
            "metric: an expression, which has compares, logic and select()"                        \
    }

/* Functions by a part of their name: "boolean_mask" of TensorFlow's, "Nonzero" of keras.ops. */
static const refusal functions[] = {
    MASK("greater"),
    MASK("greater_equal"),
    MASK("less"),
    MASK("less_equal"),
    MASK("equal"),
    MASK("not_equal"),
    MASK("logical_and"),
    MASK("logical_or"),
    MASK("logical_not"),
    {"boolean_mask", TP_KERAS_DATA_SHAPE,
     "boolean_mask gives as many elements as its mask has trues; shapes are fixed on a TPU and "
     "here",
     "multiply by the mask (Multiply) and divide by its sum; in a loss: ignore_class, or select() "
     "in an "
     "expression, which count what is left exactly"},
    {"unique", TP_KERAS_DATA_SHAPE,
     "unique gives as many elements as there are different values; shapes are fixed on a TPU and "
     "here",
     "do this while preparing the data"},
    {"unique_with_counts", TP_KERAS_DATA_SHAPE,
     "unique gives as many elements as there are different values; shapes are fixed on a TPU and "
     "here",
     "do this while preparing the data"},
    {"nonzero", TP_KERAS_DATA_SHAPE,
     "nonzero gives as many places as there are; shapes are fixed on a TPU and here",
     "keep the mask and multiply by it (Multiply)"},
    {"where", TP_KERAS_DATA_SHAPE,
     "with one argument 'where' gives as many places as there are, with three it selects by a "
     "mask: a "
     "TPU does the second alone, and no layer here either",
     "multiply by the mask and by its complement (Multiply, Add); in a loss: select() in an "
     "expression"},
    {"ragged", TP_KERAS_DYNAMIC_SHAPE, "ragged tensors have no fixed shape",
     "pad to the longest and mask (Masking, mask_zero of an Embedding)"},
    {"py_function", TP_KERAS_PYTHON, "it is Python code, which is never run", python_remedy},
    {"numpy_function", TP_KERAS_PYTHON, "it is Python code, which is never run", python_remedy},
    {"string", TP_KERAS_TEXT, "a TPU has no strings; tensors here hold no text", host_remedy},
    {"strings", TP_KERAS_TEXT, "a TPU has no strings; tensors here hold no text", host_remedy},
    {"while_loop", TP_KERAS_DATA_SHAPE, "how often it turns depends on values",
     "use a recurrent layer, whose number of turns is the length of the sequence"},
};
#undef MASK

/* Whether `part` is one of the words of `name` between dots; case and underscores do not count. */
static bool has_part(const char *name, const char *part)
{
    while (*name) {
        const char *wanted = part;
        for (; *name && *name != '.'; name++) {
            if (*name == '_') continue;
            while (wanted && *wanted == '_')
                wanted++;
            wanted = wanted && tolower((unsigned char)*name) == *wanted ? wanted + 1 : NULL;
        }
        if (wanted && !*wanted) return true;
        if (*name) name++;
    }
    return false;
}

static const refusal *find_function(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (has_part(name, functions[i].kind)) return &functions[i];
    return NULL;
}

static tpucl_status refuse(tp_keras_mapper *mapper, const tp_keras_row *row, const char *name,
                           const refusal *found)
{
    return tp_keras_find(mapper->arena, mapper->findings, found->rule, name, row->kind,
                         found->remedy, "%s", found->what);
}

/* A function of TensorFlow's or of keras.ops. */
static tpucl_status refuse_function(tp_keras_mapper *mapper, const tp_keras_row *row,
                                    const char *name, const char *function)
{
    const refusal *found = find_function(function);
    if (found) return refuse(mapper, row, name, found);
    return tp_keras_find(
        mapper->arena, mapper->findings, TP_KERAS_LAYER, name, row->kind,
        "use the layer that does the same (Add, Multiply, Reshape, Activation, ...); "
        "docs/keras.md lists the functions that become layers",
        row->is_op ? "it is the function %.100s of keras.ops, not a layer"
                   : "it is the TensorFlow function %.100s",
        function);
}

tpucl_status tp_keras_check_type(tp_keras_mapper *mapper, const tp_keras_row *row, const char *name,
                                 bool *out_is_known)
{
    const tp_json *registered = tp_keras_member(row->json, "registered_name");
    const tp_json *function = tp_keras_member(row->config, "function");
    *out_is_known = false;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(row->kind, classes[i].kind) == 0) return refuse(mapper, row, name, &classes[i]);
    if (strcmp(row->kind, "TFOpLambda") == 0)
        return refuse_function(mapper, row, name,
                               function && function->kind == TP_JSON_STRING ? function->string
                                                                            : row->file_name);
    if (row->is_op) return refuse_function(mapper, row, name, row->kind);
    const char *type = tp_keras_type(row);
    if (!mapper->options || !mapper->options->has_type || mapper->options->has_type(type)) {
        *out_is_known = true;
        return TPUCL_OK;
    }
    if (registered && registered->kind == TP_JSON_STRING &&
        strcmp(registered->string, row->kind) == 0)
        return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_PYTHON, name, row->kind,
                             "write the model with Keras' own layers",
                             "it is a class of your own; its code is not in the file");
    return tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_LAYER, name, row->kind,
                         "leave it out, or use another layer; docs/layers.md lists what there is",
                         "there is no such layer here");
}
