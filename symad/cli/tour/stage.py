"""The stages of ``symad tour``: their definition, and how to add one.

A stage is a model with a use of it. To add one, put a file into ``symad/cli/tour/stages/`` with::

    @stage("valley", "Rosenbrock's valley, minimized by Newton's method")
    def valley() -> Model:
        x, y = sympy.symbols("x y", real=True)
        return Model((1 - x) ** 2 + 100 * (y - x**2) ** 2, point=(-1.2, 1.0), use=minimize)

    def minimize(made: Made) -> list[Finding]:
        ...  # run made.graph or made.kernel on data
        return [Finding("Newton's method reaches (1, 1) in 7 steps", ok)]

The runner traces the model, differentiates it in every mode at the point and compares the modes,
checks it, lowers it and compares the code with the graph; then it calls ``use``. A finding is one
sentence that explains its numbers, with a flag that is true if they are as expected. A stage whose data or
library is not installed raises `Skip` and does not count as failed. With ``--out`` pictures go to
``made.plots``; draw only if that is not None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from symad.core.arrays import ArrayLike
from symad.core.graph import Graph
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.tracing import trace

if TYPE_CHECKING:
    from symad.numeric.kernel import Kernel


class Skip(Exception):
    """A stage cannot run here; the message says what is missing."""


@dataclass(frozen=True)
class Finding:
    """A result, stated in one sentence, with a flag that is true if it is as expected."""

    text: str
    ok: bool = True


@dataclass(frozen=True)
class Made:
    """The results of the runner for a model when ``use`` is called."""

    graph: Graph
    kernel: Kernel
    """The lowered function; None if lowering failed."""
    out: Path | None
    """The folder for files of this stage; None if no files are requested."""

    @property
    def plots(self) -> Path | None:
        """The folder for pictures by Matplotlib; None if none are requested, or it is not installed."""
        return self.out if find_spec("matplotlib") else None


def nothing(made: Made) -> list[Finding]:
    """The use of a model that is only differentiated and checked."""
    return []


@dataclass(frozen=True)
class TourModel:
    """A model: an argument of `symad.trace`, and a point.

    Args:
        f: a SymPy object, a Graph, or a Python function together with ``inputs``.
        point: a value for each input, in order; modes are compared there.
        inputs: the inputs, in order.
        wrt: the inputs to differentiate by: symbols, names or positions; all inputs by default.
        use: a function that runs the model on data.
        check: the object of the certificate, if not the model: a small instance of it.
    """

    f: Traceable
    point: Sequence[ArrayLike]
    inputs: Inputs | None = None
    wrt: Wrt | None = None
    use: Callable[[Made], list[Finding]] = nothing
    check: Traceable | None = None

    def graph(self, name: str) -> Graph:
        """The traced model, under the name of its stage."""
        g = trace(self.f, self.inputs)
        return g.named(name)


@dataclass(frozen=True)
class Stage:
    """A named model and a line about it; the short tour has those with ``quick``."""

    name: str
    about: str
    model: Callable[[], TourModel]
    quick: bool = False


STAGES: dict[str, Stage] = {}
"""All stages by name, in the order in which they run."""


def stage(
    name: str, about: str, quick: bool = False
) -> Callable[[Callable[[], TourModel]], Callable[[], TourModel]]:
    """Register a function that makes a model as a stage of the tour.

    Args:
        name: one word.
        about: what the stage shows, in one line.
        quick: true if it is one of the representative stages of ``symad tour --quick``.
    """

    def register(model: Callable[[], TourModel]) -> Callable[[], TourModel]:
        STAGES[name] = Stage(name, about, model, quick)
        return model

    return register
