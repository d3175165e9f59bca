"""Ctrl-C ends every command at once, with the exit code 130 and one line, wherever it comes."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends the signal SIGINT")

READY = "ready"
FAR = 60
"""Seconds that a program which misses the signal would take: a test of it fails."""

WORK = {
    "in a loop": """
        print("ready", flush=True)
        while True:
            pass
        """,
    "in a wait": """
        print("ready", flush=True)
        time.sleep(60)
        """,
    "where the main thread's wait goes on, as after a signal just before it": """
        import threading
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        print("ready", flush=True)
        time.sleep(60)
        """,
    "in a callback, where Python loses exceptions": """
        class Lost:
            def __del__(self):
                print("ready", flush=True)
                time.sleep(60)

        Lost()
        while True:
            pass
        """,
    "in a weak reference, again and again": """
        import threading, weakref

        def slow(reference):
            for _ in range(100_000):
                pass

        print("ready", flush=True)
        while True:
            thing = threading.Lock()
            kept = weakref.ref(thing, slow)
            del thing
        """,
    "where the work at exit does not end": """
        import atexit
        atexit.register(time.sleep, 60)
        print("ready", flush=True)
        time.sleep(60)
        """,
    "where another thread does not end": """
        import threading
        threading.Thread(target=time.sleep, args=(60,)).start()
        print("ready", flush=True)
        time.sleep(60)
        """,
}

STANDING_IN = """
import sys, types

def main(arguments):
    import signal, time
{work}

sys.modules["symad"] = types.ModuleType("symad")
sys.modules["symad.cli"] = types.ModuleType("symad.cli")
sys.modules["symad.cli"].main = main
import symad_command
sys.exit(symad_command.main())
"""


def interrupted(code: str, wait: float = 0.0, *arguments: str) -> tuple[int, str, str]:
    """The exit code and the output of a program, interrupted some time after it has said that it is ready."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().strip() == READY
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=FAR / 2)
        finally:
            process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("where", WORK)
def test_a_command_ends(where):
    code = STANDING_IN.format(work=textwrap.indent(textwrap.dedent(WORK[where]), "    "))
    assert interrupted(code) == (130, "", "symad: interrupted\n")


def test_what_is_registered_for_the_exit_is_done():
    work = "import atexit\natexit.register(print, 'removed')\nprint('ready', flush=True)\ntime.sleep(60)"
    code = STANDING_IN.format(work=textwrap.indent(work, "    "))
    assert interrupted(code) == (130, "removed\n", "symad: interrupted\n")


COMMANDS = {
    "tour": ["tour"],
    "check": ["check", "MODELS"],
    "audit": ["audit", "statsmodels"],
    "lower": ["lower", "MODELS:heavy", "--backend", "c"],
}

MODELS = """
import sympy as sp
xs = sp.symbols("x:60")
heavy = sum(sp.sin(a * b) * sp.exp(b * c) for a, b, c in zip(xs, xs[1:], xs[2:]))
"""

READY_THEN_RUN = """
import sys, symad_command

class Ready:  # said when the import of symad begins
    def find_spec(self, name, *others):
        if name == "symad":
            print("ready", flush=True)

sys.meta_path.insert(0, Ready())
sys.exit(symad_command.main(sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_at_any_moment(command, tmp_path):
    """While modules load, while graphs are built and dropped, while code is compiled."""
    file = tmp_path / "models.py"
    file.write_text(MODELS)
    arguments = [a.replace("MODELS", str(file)) for a in COMMANDS[command]]
    draw = random.Random(command)
    for wait in (0.0, *(draw.uniform(0.1, 1.8) for _ in range(3))):
        code, _, err = interrupted(READY_THEN_RUN, wait, *arguments)
        if code != 0:  # 0: it had ended before
            assert (code, err.splitlines()[-1:]) == (130, ["symad: interrupted"])
            assert len(err) < 1000
