/* SPDX-License-Identifier: Apache-2.0
 * Version of the linked library. */
#include <tpucl/version.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *tpucl_version_string(void)
{
    return VERSION_TEXT(TPUCL_VERSION_MAJOR, TPUCL_VERSION_MINOR, TPUCL_VERSION_PATCH);
}
