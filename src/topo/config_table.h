/* SPDX-License-Identifier: Apache-2.0
 * The table of configuration keys. A new key is a field of tp_config and a row here; reader, overrides,
 * help, documentation and schema follow. */
#ifndef TP_TOPO_CONFIG_TABLE_H
#define TP_TOPO_CONFIG_TABLE_H

#include <stddef.h>
#include "topo/config.h"

typedef enum tp_config_type {
    TP_CONFIG_STRING,  /* const char * */
    TP_CONFIG_INT,     /* int64_t */
    TP_CONFIG_DOUBLE,  /* double */
    TP_CONFIG_BOOL,    /* bool */
    TP_CONFIG_CHOICE,  /* int32_t: index into `choices`, which is the order of the enum */
    TP_CONFIG_INTS,    /* tp_config_ints */
    TP_CONFIG_METRICS, /* tp_config_metrics, see config_metrics.h */
    TP_CONFIG_NUMBERS, /* tp_config_numbers */
    TP_CONFIG_STRINGS, /* tp_config_strings */
    TP_CONFIG_GROUPS,  /* cross_shard.groups: a list of lists of core ids, equally long */
    TP_CONFIG_FILES,   /* tp_config_files: a text, or an object of texts */
    TP_CONFIG_LOSSES,  /* tp_config_losses: an object of losses by output, see config_losses.h */
    TP_CONFIG_MODEL    /* const tp_json *: an object, kept as it is */
} tp_config_type;

typedef struct tp_config_key {
    const char *path; /* "optimizer.learning_rate"; keys of a group stand together */
    tp_config_type type;
    size_t offset;              /* of the field in tp_config */
    double min, max;            /* of the number, or of each number in a list */
    const char *const *choices; /* NULL-terminated */
    const char *fallback;       /* JSON; "null": not given; NULL: the key is required */
    bool keeps_result;          /* its value never changes a bit of the result */
    const char *meaning;        /* one sentence for documentation and help */
} tp_config_key;

extern const tp_config_key tp_config_keys[]; /* ends with a NULL path */
size_t tp_config_key_count(void);

/* Keys of a group that belong to some of the choices of its "name" (topo/config_choices.h). */
typedef struct tp_config_choice {
    const char *prefix;       /* "optimizer." */
    const char *const *names; /* as the choices of the name key */
    const char *const *keys;  /* of each name: "key=default ..." */
} tp_config_choice;

extern const tp_config_choice tp_config_choices[]; /* ends with a NULL prefix */

/* The choices that `path` depends on and its part behind their prefix; NULL: the key has a meaning with any
 * of them. */
const tp_config_choice *tp_config_find_choice(const char *path, const char **out_part);

/* Whether what was chosen, a value of the name key of the group that `path` is in, has this key. */
bool tp_config_choice_has(const char *path, int32_t chosen);

enum {
    TP_CONFIG_MAX_KEYS = 192,
    TP_CONFIG_MAX_DIMS = 8,
    TP_CONFIG_MAX_ITEMS = 4096 /* of lists of numbers and of strings */
};

/* Index in the table, or -1. */
int tp_config_find_key(const char *path);

/* A key whose path is `prefix` + "name" or "policy": the object at `prefix` may be given as that name alone. -1 when
 * the group has none. `prefix` ends with a point. */
int tp_config_find_name_key(const char *prefix);

/* Strings and documents of one configuration, and which keys were given. */
struct tp_config_store {
    struct tp_arena *arena;
    tp_json_document *model_document;
    bool given[TP_CONFIG_MAX_KEYS];
};

#endif
