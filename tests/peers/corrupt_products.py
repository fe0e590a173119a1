#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_products with a fault: one element in the results of its bf16 side is off by as much as a lost term. The
environment names the real one in BENCH_PRODUCTS."""
import os
import struct
import subprocess
import sys

process = subprocess.Popen([os.environ["BENCH_PRODUCTS"], *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True)
if sys.argv[1] in ("describe", "roofline"):
    sys.stdout.write(process.communicate()[0])
    sys.exit(process.returncode)
for line in sys.stdin:
    process.stdin.write(line)
    process.stdin.flush()
    answer = process.stdout.readline()
    words = line.split()
    if words[:2] == ["open", "default"]:
        with open(words[4], "r+b") as file:
            file.seek(-4, os.SEEK_END)
            last = struct.unpack("<f", file.read(4))[0]
            file.seek(-4, os.SEEK_END)
            file.write(struct.pack("<f", last + 0.5))
    sys.stdout.write(answer)
    sys.stdout.flush()
process.stdin.close()
process.wait()
