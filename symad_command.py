"""The command ``symad``, which Ctrl-C ends within a second, with one line and the exit code 130.

This file imports nothing of symad: an interrupt is answered while symad and SymPy are imported, too.
An exception in a callback of Python, such as `__del__`, is printed and lost, and an interrupt may come there.
An interrupt that comes just before a system call does not end the wait of that call. A second thread, which
the handler of signals in C wakes, then ends the process. It ends it, too, if the work at exit takes longer.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

CODE = 128 + signal.SIGINT
"""The exit code of an interrupted program, as a shell has it."""

GRACE = 0.6
"""The seconds that a command has to end by itself."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command as `symad.cli.main` does, with the same exit codes; Ctrl-C ends the process."""
    watch = Interrupts()
    with suppress(ValueError):  # not the main thread: whoever runs it receives the interrupts
        signal.signal(signal.SIGINT, watch.receive)
        watch.start()
    try:
        from symad.cli import main as run

        return run(argv)
    except KeyboardInterrupt:
        watch.end()
        raise


class Interrupts:
    """What is done about interrupts; the first one raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        """None has come."""
        self.received = False
        self.told = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        if self.received:
            self.leave()
        self.received = True
        sys.unraisablehook = _say_nothing
        raise KeyboardInterrupt

    def start(self) -> None:
        """Start the thread that ends the process after an interrupt, whatever the main thread does."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        _thread.start_new_thread(self.wait, (read,))

    def wait(self, pipe: int) -> None:
        """End the process after an interrupt; ``pipe`` gives the number of each signal that comes."""
        while os.read(pipe, 1) != bytes([signal.SIGINT]):
            pass
        time.sleep(GRACE)
        self.leave()

    def end(self) -> None:
        """End the process with what is registered for its exit, such as the removal of temporary folders."""
        self.tell()
        with suppress(BaseException):
            atexit._run_exitfuncs()
        self.leave()

    def leave(self) -> None:
        """End the process at once."""
        self.tell()
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(CODE)

    def tell(self) -> None:
        """Say once what has happened; a terminal gets back the cursor, which a bar of progress may hide."""
        if self.told:
            return
        self.told = True
        cursor = "\x1b[?25h" if sys.stderr is not None and sys.stderr.isatty() else ""
        with suppress(OSError):
            os.write(2, f"{cursor}symad: interrupted\n".encode())


def _say_nothing(lost: Any) -> None:
    """In place of a report about an interrupt in a callback."""


if __name__ == "__main__":
    sys.exit(main())
