/* SPDX-License-Identifier: Apache-2.0
 * tpucl-compiler: started by the library, never by hand (device/compiler.h). A key pressed in the terminal is for the
 * parent: when that ends, the socket does, and this process with it. */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "device/compiler.h"

int main(int argc, char **argv)
{
    if (argc != 4) {
        static const char usage[] = "tpucl-compiler is started by libtpucl\n";
        const ssize_t ignored = write(STDERR_FILENO, usage, sizeof usage - 1);
        (void)ignored;
        return 2;
    }
    signal(SIGINT, SIG_IGN);
    return tp_compiler_serve(STDIN_FILENO, argv[1], argv[2], argv[3]) != TPUCL_OK;
}
