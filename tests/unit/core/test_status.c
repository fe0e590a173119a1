/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "core/status.h"

static tpucl_status inner(void)
{
    return TP_FAIL_CODE(TPUCL_IO_ERROR, 28, "wrote %d of %d bytes", 3, 10);
}

static tpucl_status outer(void)
{
    TP_TRY(inner());
    return TPUCL_OK;
}

Test(status, record_holds_message_code_and_trail)
{
    cr_assert_eq(outer(), TPUCL_IO_ERROR);
    const tpucl_error *error = tpucl_last_error();
    cr_assert_eq(error->status, TPUCL_IO_ERROR);
    cr_assert_eq(error->foreign_code, 28);
    cr_assert_str_eq(error->message, "wrote 3 of 10 bytes");
    cr_assert(strstr(error->trail, "inner (") < strstr(error->trail, "outer ("));
}

Test(status, note_goes_in_front_and_never_overflows)
{
    cr_assert_eq(inner(), TPUCL_IO_ERROR);
    for (int i = 0; i < 1000; i++)
        tp_error_note("while reading shard %d of 8", i);
    const tpucl_error *error = tpucl_last_error();
    cr_assert_lt(strlen(error->message), sizeof error->message);
    cr_assert_eq(strncmp(error->message, "while reading shard 999 of 8: ", 30), 0);
}

Test(status, every_status_has_a_name)
{
    cr_assert_str_eq(tpucl_status_name(TPUCL_NO_DEVICE), "TPUCL_NO_DEVICE");
    cr_assert_str_eq(tpucl_status_name((tpucl_status)999), "TPUCL_UNKNOWN");
}
