"""Limits of a verification, counted in work, so that a verdict does not depend on how busy a machine is.

The loops that do the work count it. Memory cannot be predicted, and a limit of time has to hold everywhere:
a second thread watches both, and raises `OutOfBudget` in the first (CPython's `PyThreadState_SetAsyncExc`).
A single call into compiled code is not interrupted: the error is raised when it returns.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from types import TracebackType
from typing import TypeVar

import sympy
from sympy.functions.elementary.hyperbolic import HyperbolicFunction, InverseHyperbolicFunction
from sympy.functions.elementary.trigonometric import InverseTrigonometricFunction, TrigonometricFunction
from sympy.functions.special.bessel import AiryBase, BesselBase

from symad.core.arrays import Array
from symad.core.graph import Node
from symad.core.identifiers import brief
from symad.core.questions import flops
from symad.errors import SymadError
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.sympy_functions.special_functions import SpecialFunction


class Unsupported(SymadError):
    """A graph holds something that cannot be evaluated in a prime field; says what."""


@dataclass(frozen=True)
class Budget:
    """The work, memory and time that a verification may use; at a limit it stops and the certificate says so.

    A step is one operation on Python numbers and takes about a microsecond. Steps are counted by the code
    that does the work, and before calls into other libraries.

    Args:
        steps: the steps of one certificate.
        proof_steps: the part of these for proofs.
        residues: the largest number of residues of one node in all lanes.
        terms: the largest number of terms of a polynomial in a proof.
        points: the number of points that the search for a witness tries.
        memory: bytes by which the process may grow.
        seconds: a limit of wall-clock time, none by default. With it a verdict may depend on the machine
            and its load, and the certificate says so.
    """

    steps: int = 20_000_000
    proof_steps: int = 4_000_000
    residues: int = 1 << 26
    terms: int = 4000
    points: int = 24
    memory: int = 4 << 30
    seconds: float | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            known = value is None and limit.name == "seconds"
            if not known and not (isinstance(value, (int, float)) and value >= 0):
                raise ValueError(f"Budget: {limit.name} is a number from 0 on, not {brief(value)}")

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of a certificate about its limits."""
        if self.seconds is None:
            return ()
        limit = f"a limit of {self.seconds:g} s of wall-clock time was set"
        return (f"{limit}: what is undecided here may depend on the machine and its load",)


class OutOfBudget(Unsupported):
    """A limit of work or size was reached."""


QUIET, OFTEN = 2.0, 0.5
"""Seconds until the progress is shown, and between two lines of it."""


def show(line: str) -> None:
    """A line of progress in place of the one before; an empty one takes it away. Terminals alone see it."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


@dataclass(eq=False)
class Meter:
    """Counts steps against a limit, and against the limit of the enclosing computation."""

    budget: Budget
    limit: float = -1.0
    """The limit in steps: the budget's, unless a smaller one is given."""
    outer: Meter | None = None
    start: float = field(default_factory=time.monotonic)
    steps: float = 0.0
    """Steps spent so far."""
    stopped: str = ""
    """The limit at which a computation was interrupted: time or memory."""
    told: float = 0.0
    """When the progress is shown again."""

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise TypeError(
                "budget is a symad.verification.Budget, such as Budget(steps=1_000_000), not "
                f"{brief(self.budget)}"
            )
        if self.limit < 0:
            self.limit = float(self.budget.steps)
        self.told = self.start + QUIET

    def part(self, limit: float) -> Meter:
        """A meter for a part of the computation, with a limit of its own."""
        return Meter(self.budget, limit, self, self.start)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the start: for messages, and for `Budget.seconds`."""
        return time.monotonic() - self.start

    @property
    def is_late(self) -> bool:
        """True if a limit of wall-clock time was set and has passed."""
        return self.budget.seconds is not None and self.seconds > self.budget.seconds

    def spend(self, steps: float = 1.0) -> None:
        """Count some steps, and stop at the limit.

        Raises:
            OutOfBudget: the limit is reached.
        """
        self.steps += steps
        if self.outer is not None:
            self.outer.spend(steps)
        elif time.monotonic() > self.told:
            self.told = time.monotonic() + OFTEN
            show(f"symad: {self.seconds:.0f} s, {self.steps:,.0f} of at most {self.limit:,.0f} steps")
        if self.stopped or self.steps >= self.limit or self.is_late:
            raise OutOfBudget(self.used_up)

    @property
    def used_up(self) -> str:
        """The message when the budget is used up."""
        inner = self.outer.stopped if self.outer is not None and not self.stopped else self.stopped
        if inner == "memory":
            return f"the memory allowed ({self.budget.memory >> 20} MiB) was used up"
        if inner == "time" or (self.is_late and self.steps < self.limit):
            return f"the time allowed ({self.budget.seconds:g} s) was used up"
        steps = f"{self.limit:,.0f}"
        return f"the work allowed ({steps} step{'s' * (steps != '1')}) was used up"

    def check_size(self, count: int) -> None:
        """Refuse arrays that are too large.

        Raises:
            OutOfBudget: they have more residues than the budget allows.
        """
        if count > self.budget.residues:
            raise OutOfBudget(f"an array of {count} residues is larger than allowed ({self.budget.residues})")


NODE = 60
"""Fixed steps of one node, such as finding its rule."""

ARRAY = 8
"""Fixed steps of one operation on an array of residues, independent of its size."""

FUNCTION, SLOW_FUNCTION, SLOWEST_FUNCTION = 20, 1000, 300_000
"""The number of operations that one evaluation of a scalar function counts for; the last of those that take
0.2 s and more for 60 digits at arguments beyond 1."""

QUICK = (
    sympy.exp, sympy.log, sympy.LambertW, sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Max, sympy.Min,
    sympy.floor, sympy.ceiling, sympy.frac, sympy.Mod, sympy.sinc, sympy.atan2, sympy.erf, sympy.erfc,
    sympy.erfi, sympy.erfinv, sympy.erfcinv, sympy.gamma, sympy.loggamma, sympy.polygamma, sympy.digamma,
    sympy.factorial, sympy.beta, sympy.Si, sympy.Ci, sympy.Shi, sympy.Chi, sympy.fresnels, sympy.fresnelc,
    TrigonometricFunction, InverseTrigonometricFunction, HyperbolicFunction, InverseHyperbolicFunction,
    BesselBase, AiryBase,
)  # fmt: skip
"""Functions that mpmath evaluates quickly at arguments of any size, and families of them."""


def is_slow(head: type[sympy.Basic]) -> bool:
    """True if many digits of a function may take long: it gets arguments of ordinary size only."""
    if isinstance(head, type) and issubclass(head, SpecialFunction):
        return True
    if (getattr(head, "__module__", "") or "").startswith("symad."):
        return False
    return not (isinstance(head, type) and issubclass(head, QUICK))


def takes_seconds(node: Node) -> bool:
    """True of polylogarithms of orders that are no integers, and of derivatives by some parameters."""
    head = node.op.head if isinstance(node.op, Apply) else None
    if head is sympy.polylog:
        return not isinstance(constant_value(node.args[0]), int)
    return getattr(head, "of", None) in (sympy.polylog, sympy.betainc, sympy.betainc_regularized)


def _weight(node: Node, head: type[sympy.Basic]) -> int:
    """The number of operations that one evaluation of a function counts for."""
    if takes_seconds(node):
        return SLOWEST_FUNCTION
    return SLOW_FUNCTION if is_slow(head) else FUNCTION


def operations(nodes: Sequence[Node]) -> float:
    """The scalar operations of one evaluation of some nodes, whose sizes are numbers."""
    total = 0.0
    for node in nodes:
        own = float(flops(node.op, node))
        if isinstance(node.op, Apply):
            own *= _weight(node, node.op.head)
        total += 1 + own
    return total


def steps_of_residues(node: Node, value: Array, done: int) -> float:
    """The steps of one node modulo primes, from its residues in all lanes and the operations on arrays."""
    slow = 8.0 if value.dtype == object else 1.0
    each = 2.0 if isinstance(node.op, Apply) else 0.05
    elements = max(1, prod(node.shape))
    return NODE + ARRAY * done + slow * each * value.size * max(1.0, float(flops(node.op, node)) / elements)


# ---- a computation is interrupted when its memory or its time is used up --------------------------


GRACE = 0.25
"""Seconds that the loops have to stop by themselves, after the limit of time."""

AGAIN = 0.5
"""Seconds after which an interruption is repeated, if the computation has continued."""


class OutOfTime(OutOfBudget):
    """Raised from another thread, which can give no arguments."""

    def __init__(self, message: str = "the time or memory allowed was used up") -> None:
        """``message`` is the text for users."""
        super().__init__(message)


class Guard:
    """Interrupts the thread that enters it when its memory, or a limit of its time, is used up."""

    def __init__(self, meter: Meter) -> None:
        """``meter`` has the limits."""
        self.meter = meter
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._thread = 0
        self._sent = False

    def __enter__(self) -> Guard:
        self._thread = threading.get_ident()
        threading.Thread(target=self._watch, name="symad budget", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave()
        except OutOfTime:  # sent at the last moment
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._left.set()
        if self._sent:  # an interruption that is still pending is raised, and caught, in this loop
            for _ in range(10):
                pass

    def _watch(self) -> None:
        before = resident_memory()
        while not self._left.wait(0.05):
            limit = self.meter.budget.seconds
            late = limit is not None and self.meter.seconds > limit + GRACE
            large = before and resident_memory() - before > self.meter.budget.memory
            if not (late or large):
                continue
            with self._lock:
                if self._left.is_set():
                    return
                self.meter.stopped = "memory" if large and not late else "time"
                self._sent = True
                _interrupt(self._thread, OutOfTime)
            if self._left.wait(AGAIN):
                return


def _interrupt(thread: int, error: type[BaseException]) -> None:
    """Raise an error in a thread as soon as it runs Python code again.

    NULL, which withdraws an error, would leave the interpreter checking for it: that is slow, and CPython
    3.11 hangs then under a profiler.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def resident_memory() -> int:
    """The resident memory of this process in bytes; 0 where the system does not report it."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


T = TypeVar("T")


def within(meter: Meter, compute: Callable[[], T], otherwise: T) -> T:
    """The result of a computation, or ``otherwise`` if it uses up the budget."""
    try:
        meter.spend(0)
        with Guard(meter):
            return compute()
    except OutOfBudget:
        return otherwise
    except Exception:
        if meter.stopped:  # other code has turned an interruption into its own error
            return otherwise
        raise


def in_time(meter: Meter, compute: Callable[[], T], otherwise: T) -> T:
    """The same for words about a verdict: they count no steps, and have what is left of a limit of time."""
    return within(Meter(meter.budget, start=meter.start), compute, otherwise)
