"""Scripts run in a child of the test's process: what is imported here need not be imported there.

A script may need a process of its own: it registers ops, changes folders or ends by `sys.exit`. A child
starts in milliseconds; a new interpreter imports symad and SymPy first, in a second of CPU. Where processes
cannot fork, and for scripts that use a library with threads of its own (JAX), a new interpreter is started.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300


def run_script(path, arguments=(), *, folder, forks=True):
    """(exit status, output) of a Python file run as a program in a folder."""
    if not forks or not hasattr(os, "fork"):
        return run_interpreter([str(path), *arguments], folder)

    def program():
        sys.argv = [str(path), *arguments]
        sys.path.insert(0, str(Path(path).parent))
        runpy.run_path(str(path), run_name="__main__")

    return in_child(program, folder)


def run_interpreter(arguments, folder):
    """(exit status, output) of a new interpreter."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    return done.returncode, done.stdout


def in_child(action, folder):
    """(exit status, output) of ``action()`` in a forked child whose working folder is `folder`."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _act(action, folder, output.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode("utf-8", "replace")


def _act(action, folder, output):
    """Everything that the child does. It never returns, so that no test goes on in it."""
    status = 1
    try:
        signal.alarm(SECONDS)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MPLBACKEND": "agg"}
        if "matplotlib" in sys.modules:
            sys.modules["matplotlib"].use("agg")
        os.chdir(folder)
        action()
        status = 0
    except SystemExit as stopped:
        status = _status(stopped.code)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


def _status(code):
    """The exit status of ``sys.exit(code)``, as Python has it."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
