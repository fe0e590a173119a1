/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: what was written is read; what is not finished, cut or changed is noticed and passed over. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/json_write.h"
#include "io/checkpoint.h"

static char folder[] = "/tmp/tpucl_checkpoint_XXXXXX";
static tp_arena *arena;

static void setup(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    cr_assert(tp_arena_create(0, &arena) == TPUCL_OK);
}

static void teardown(void)
{
    tp_checkpoint_steps steps;
    cr_assert(tp_checkpoint_list(folder, arena, &steps) == TPUCL_OK);
    for (size_t i = 0; i < steps.complete_count; i++)
        cr_assert(tp_checkpoint_remove(folder, steps.complete[i]) == TPUCL_OK);
    for (size_t i = 0; i < steps.incomplete_count; i++)
        cr_assert(tp_checkpoint_remove(folder, steps.incomplete[i]) == TPUCL_OK);
    cr_assert(tp_file_remove_folder(folder) == TPUCL_OK, "%s", tpucl_last_error()->message);
    tp_arena_destroy(arena);
}

TestSuite(checkpoint, .init = setup, .fini = teardown);

static void save(int64_t step, float value)
{
    const float weights[] = {value, 2, 3};
    const uint8_t sums[] = {1, 2};
    tp_tensor_entry params = {"w", TP_F32, {0}, weights, sizeof weights};
    tp_tensor_entry state = {"sums", TP_U8, {0}, sums, sizeof sums};
    cr_assert(tp_shape_init(&params.shape, 1, (int64_t[]){3}) == TPUCL_OK);
    cr_assert(tp_shape_init(&state.shape, 1, (int64_t[]){2}) == TPUCL_OK);
    const tp_checkpoint_part parts[] = {{"params", &params, 1}, {"state", &state, 1}};
    cr_assert(tp_checkpoint_write(
                  folder, step, parts, 2,
                  "{\"loss\": 0.1, \"name\": \"caf\\u00e9 \\\"x\\\"\", \"n\": 7}") == TPUCL_OK,
              "%s", tpucl_last_error()->message);
}

static const char *path_of(int64_t step, const char *name)
{
    return tp_file_join(arena, tp_checkpoint_path(arena, folder, step), name);
}

static float first_weight(const tp_checkpoint *checkpoint)
{
    float value;
    const tp_safetensors *params = tp_checkpoint_find_part(checkpoint, "params");
    memcpy(&value, tp_safetensors_find(params, "w")->data, sizeof value);
    return value;
}

Test(checkpoint, the_sum_is_that_of_rfc_3720)
{
    const uint8_t zeros[32] = {0};
    cr_assert_eq(tp_crc32c(0, "123456789", 9), 0xe3069283u);
    cr_assert_eq(tp_crc32c(0, zeros, sizeof zeros), 0x8a9136aau); /* RFC 3720, B.4 */
    cr_assert_eq(tp_crc32c(tp_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    cr_assert_eq(tp_crc32c(0, NULL, 0), 0);
}

Test(checkpoint, what_was_written_is_read)
{
    tp_checkpoint *checkpoint = NULL;
    double loss = 0;
    save(12, 1.5f);
    cr_assert(tp_checkpoint_open(path_of(12, ""), &checkpoint) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert_eq(tp_checkpoint_step(checkpoint), 12);
    cr_assert_eq(first_weight(checkpoint), 1.5f);
    cr_assert(tp_json_get_double(tp_checkpoint_state(checkpoint), "loss", 0, 1, &loss) == TPUCL_OK);
    cr_assert_eq(loss, 0.1);
    cr_assert_null(tp_checkpoint_find_part(checkpoint, "stat"));
    cr_assert_eq(tp_checkpoint_file_count(checkpoint), 2);
    cr_assert_str_eq(tp_checkpoint_file_at(checkpoint, 0)->name, "params.safetensors");
    tp_checkpoint_close(checkpoint);
    save(12, 2.5f); /* replaced */
    cr_assert(tp_checkpoint_open(path_of(12, ""), &checkpoint) == TPUCL_OK);
    cr_assert_eq(first_weight(checkpoint), 2.5f);
    tp_checkpoint_close(checkpoint);
}

Test(checkpoint, the_newest_whole_one_is_taken)
{
    tp_checkpoint *checkpoint = NULL;
    tp_checkpoint_steps steps;
    tp_problems skipped = {0};
    for (int64_t step = 9; step <= 12; step++)
        save(step, (float)step);
    cr_assert(tp_file_remove(path_of(12, "manifest.json")) == TPUCL_OK);
    cr_assert(tp_file_write_atomic(path_of(11, "state.safetensors"), "short", 5) == TPUCL_OK);
    cr_assert(tp_checkpoint_list(folder, arena, &steps) == TPUCL_OK);
    cr_assert_eq(steps.complete_count, 3);
    cr_assert_eq(steps.incomplete_count, 1);
    cr_assert_eq(steps.complete[2], 11);
    cr_assert(tp_checkpoint_open_newest(folder, &skipped, &checkpoint) == TPUCL_OK);
    cr_assert_eq(tp_checkpoint_step(checkpoint), 10);
    cr_assert_eq(skipped.count, 2);
    cr_assert(strstr(skipped.text, "step-000000000012") && strstr(skipped.text, "not finished"));
    cr_assert(strstr(skipped.text, "state.safetensors' has 5 bytes"), "%s", skipped.text);
    tp_checkpoint_close(checkpoint);
}

Test(checkpoint, without_a_whole_one_there_is_none)
{
    tp_checkpoint *checkpoint = NULL;
    tp_problems skipped = {0};
    cr_assert(tp_checkpoint_open_newest(folder, &skipped, &checkpoint) == TPUCL_NOT_FOUND);
    cr_assert(tp_checkpoint_open_newest("/nowhere/at/all", &skipped, &checkpoint) ==
              TPUCL_NOT_FOUND);
    cr_assert_eq(skipped.count, 0);
    cr_assert(tp_checkpoint_remove(folder, 3) == TPUCL_OK);
}

/* No flipped bit of any file goes unnoticed, but in spaces. */
Test(checkpoint, every_flipped_bit_is_noticed)
{
    static const char *const names[] = {"manifest.json", "params.safetensors", "state.safetensors"};
    save(1, 1);
    for (size_t n = 0; n < 3; n++) {
        char *bytes = NULL;
        size_t length = 0;
        cr_assert(tp_file_read(path_of(1, names[n]), 1 << 20, &bytes, &length) == TPUCL_OK);
        for (size_t i = 0; i < length; i++) {
            tp_checkpoint *checkpoint = NULL;
            const char bit = (char)(1 << (i % 7));
            if (n == 0 && (bytes[i] == ' ' || bytes[i] == '\n')) continue;
            bytes[i] ^= bit;
            cr_assert(tp_file_write_atomic(path_of(1, names[n]), bytes, length) == TPUCL_OK);
            cr_assert(tp_checkpoint_open(path_of(1, ""), &checkpoint) != TPUCL_OK,
                      "byte %zu of %s: '%c'", i, names[n], bytes[i]);
            bytes[i] ^= bit;
        }
        cr_assert(tp_file_write_atomic(path_of(1, names[n]), bytes, length) == TPUCL_OK);
        tp_free(bytes);
    }
}

Test(checkpoint, a_manifest_leads_nowhere_else)
{
    static const char *const rows[] = {
        "{\"name\": \"../x\", \"bytes\": 1, \"crc32c\": 1}",
        "{\"name\": \"\", \"bytes\": 1, \"crc32c\": 1}",
        "{\"name\": \"a\", \"bytes\": -1, \"crc32c\": 1}",
        "{\"name\": \"a\", \"bytes\": 1e300, \"crc32c\": 1}",
        "{\"name\": \"a\", \"bytes\": 1, \"crc32c\": 4294967296}",
        "7",
    };
    save(1, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tp_checkpoint *checkpoint = NULL;
        const char *text = tp_arena_printf(
            arena, "{\"format\":1,\"step\":1,\"files\":[%s],\"state\":{}}", rows[i]);
        tp_json_document *document = NULL;
        tp_json_writer writer = {.compact = true};
        char *compact = NULL;
        cr_assert(tp_json_parse(text, strlen(text), "row", &document) == TPUCL_OK);
        tp_json_write_value(&writer, tp_json_root(document));
        cr_assert(tp_json_writer_finish(&writer, &compact) == TPUCL_OK);
        const uint32_t sum = tp_crc32c(0, compact, strlen(compact));
        compact[strlen(compact) - 1] = '\0';
        const char *whole = tp_arena_printf(arena, "%s,\"crc32c\":%u}", compact, sum);
        cr_assert(tp_file_write_atomic(path_of(1, "manifest.json"), whole, strlen(whole)) ==
                  TPUCL_OK);
        const tpucl_status status = tp_checkpoint_open(path_of(1, ""), &checkpoint);
        cr_assert(status == TPUCL_CORRUPT_DATA, "%s: %s", rows[i], tpucl_last_error()->message);
        cr_assert(strstr(tpucl_last_error()->message, "checksum") == NULL, "%s",
                  tpucl_last_error()->message);
        tp_free(compact);
        tp_json_destroy(document);
    }
}

Test(checkpoint, what_cannot_be_written_leaves_none)
{
    tp_checkpoint_steps steps;
    const tp_checkpoint_part parts[] = {{"no/folder", NULL, 0}};
    save(1, 1);
    cr_assert(tp_checkpoint_write(folder, 2, parts, 1, "{}") == TPUCL_NOT_FOUND);
    cr_assert(tp_checkpoint_write(folder, 3, NULL, 0, "{") != TPUCL_OK);
    cr_assert(tp_checkpoint_write(folder, -1, NULL, 0, "{}") == TPUCL_INVALID_ARGUMENT);
    cr_assert(tp_checkpoint_list(folder, arena, &steps) == TPUCL_OK);
    cr_assert_eq(steps.complete_count, 1);
    cr_assert_eq(steps.complete[0], 1);
}
