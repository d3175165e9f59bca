"""Certificates in test suites: `derivative` makes a test, and the fixture `symad_verify` is `verify`.

    @symad.pytest.derivative(x * sympy.log(x), wrt=x, where=x > 0)
    def test_slope_of_entropy():
        return mylibrary.entropy_slope

pytest finds the plugin once symad is installed; nothing is imported before the first test uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from symad.core.graph import Graph
from symad.core.signatures import Traceable, Wrt
from symad.tracing import trace
from symad.verification import Certificate
from symad.verification import verify as certificate_of

__all__ = ["derivative", "verify"]

MADE: Counter[str] = Counter()
"""The number of certificates of each status that tests have made in this process."""

LEVELS = ("measured", "tested", "proved")
KINDS = ("value", "gradient", "jacobian", "hessian", "vjp", "jvp")
SEED = 1


def verify(
    f: Traceable, wrt: Wrt | None = None, *, level: str = "measured", code: bool = False, **candidate: Any
) -> Certificate:
    """A certificate of a function or derivative; if the claim is wrong, the test fails and prints it.

    Args:
        f: an argument of `symad.verify`, or a Python function with ``inputs=``.
        wrt: inputs to differentiate by, all by default.
        level: "proved" demands a proof, "tested" at least an identity test. "measured" also accepts code that
            agrees at every point that was tried; code that is not traced can reach no better level.
        code: if true, Python code of the candidate is traced and compared as a formula, exactly; otherwise it
            is called with numbers.
        candidate: one of ``value=``, ``gradient=``, ``jacobian=``, ``hessian=``, ``vjp=``, ``jvp=``, and
            options of `symad.verify`. Random choices have a fixed seed unless ``seed=`` is given.

    Returns:
        The certificate.

    Raises:
        ValueError: ``level`` is not one of these.
        AssertionError: the claim is refuted or undecided, or not established at this level; the message is
            the certificate.
    """
    __tracebackhide__ = True  # pytest shows the certificate and the test, not this file
    if level not in LEVELS:
        raise ValueError(f'level is "proved", "tested" or "measured", not {level!r}')
    if "inputs" in candidate:
        f = trace(f, candidate.pop("inputs"))
    if code:
        graph = f if isinstance(f, Graph) else trace(f)
        traced = {k: trace(v, list(graph.inputs)) for k, v in candidate.items() if k in KINDS and callable(v)}
        candidate = {**candidate, **traced}
    certificate = certificate_of(f, wrt, **{"seed": SEED, **candidate})
    MADE[certificate.status] += 1
    if certificate.status not in LEVELS[LEVELS.index(level) :]:
        raise AssertionError(f"{certificate}\n(the test asks for: {level})")
    return certificate


def derivative(
    f: Traceable, wrt: Wrt | None = None, *, kind: str = "gradient", level: str = "measured", **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a function that returns code: it passes if the code is the derivative of ``f``.

    The function may have fixtures and parameters of pytest like any test.

    Args:
        f: an argument of `symad.verify`, or a Python function with ``inputs=``.
        wrt: inputs to differentiate by, all by default.
        kind: "gradient", "jacobian", "hessian", "value", "vjp" or "jvp": which of them the code computes.
        level: see `verify`.
        options: further options of `verify`, such as ``where=`` or ``code=True``.

    Raises:
        ValueError: ``kind`` is not one of these.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")

    def make(test: Callable[..., Any]) -> Callable[..., None]:
        @wraps(test)
        def certified(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            verify(f, wrt, level=level, **{kind: test(*args, **fixtures)}, **options)

        return certified

    return make
