"""An interrupt ends a compiler with the processes that it has started."""

import os
import signal
import sys
import time

import pytest

from symad.numeric.compiler.c_compiler import _reported

pytestmark = pytest.mark.skipif(os.name != "posix", reason="groups of processes")

DRIVER = """
import subprocess, sys
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(inner.pid))
inner.wait()
"""


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_no_process_is_left(tmp_path):
    written = tmp_path / "pid"

    def interrupt(number, frame):
        if not (written.exists() and written.read_text()):
            signal.setitimer(signal.ITIMER_REAL, 0.02)  # not yet
            return
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            _reported([sys.executable, "-c", DRIVER, str(written)], dict(os.environ), 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    inner = int(written.read_text())
    for _ in range(500):
        if not is_running(inner):
            break
        time.sleep(0.02)
    assert not is_running(inner)


def test_the_code_and_the_errors_come_back():
    told = "import sys; print('out'); print('wrong', file=sys.stderr); sys.exit(3)"
    assert _reported([sys.executable, "-c", told], dict(os.environ), 1) == (3, "wrong\n")
