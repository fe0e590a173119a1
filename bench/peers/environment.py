# SPDX-License-Identifier: Apache-2.0
"""Where the peers' Python is: build/peers (bench/peers/setup), or what --python names."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / "build/peers/bin/python"


def import_numpy():
    """numpy; where this Python lacks it the script starts again under the peers'."""
    try:
        import numpy
        return numpy
    except ModuleNotFoundError:
        named = [after for before, after in zip(sys.argv, sys.argv[1:]) if before == "--python"]
        python = named[0] if named else str(PYTHON)
        if os.environ.get("TPUCL_STARTED_AGAIN_WITH") == python or not os.path.exists(python):
            sys.exit("numpy is missing: run bench/peers/setup, or name a Python that has it and PyTorch with --python")
        os.environ["TPUCL_STARTED_AGAIN_WITH"] = python
        os.execv(python, [python, *sys.argv])
