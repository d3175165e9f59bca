"""The stages of ``symad tour``: what a stage is, and how to add one.

A stage is a model and what is done with it. To add one, put a file into ``symad/cli/tour/stages/`` with::

    @stage("valley", "Rosenbrock's valley, minimised by Newton's method")
    def valley() -> Model:
        x, y = sympy.symbols("x y", real=True)
        return Model((1 - x) ** 2 + 100 * (y - x**2) ** 2, point=(-1.2, 1.0), use=minimise)

    def minimise(made: Made) -> list[Finding]:
        ...  # run made.graph or made.kernel on data
        return [Finding("Newton's method reaches (1, 1) in 7 steps", ok)]

The runner traces the model, differentiates it in every mode at the point and compares the modes,
checks it, lowers it and compares the code with the graph; then it calls ``use``. A finding is one
sentence that explains its numbers and says whether they are as they must be. A stage whose data or
library is not installed raises `Skip` and does not count as failed. With ``--out`` pictures go to
``made.plots``; draw only if that is not None.
"""

from __future__ import annotations

import importlib
import pkgutil
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
    """One thing that was found, told in a sentence, and whether it is as it must be."""

    text: str
    ok: bool = True


@dataclass(frozen=True)
class Made:
    """What the runner has made of a model when ``use`` is called."""

    graph: Graph
    kernel: Kernel
    """The lowered function; None if lowering failed."""
    out: Path | None
    """The folder for files of this stage; None if none are wanted."""

    @property
    def plots(self) -> Path | None:
        """The folder for pictures by Matplotlib; None if none are wanted, or it is not installed."""
        return self.out if find_spec("matplotlib") else None


def nothing(made: Made) -> list[Finding]:
    """The use of a model that is only differentiated and checked."""
    return []


@dataclass(frozen=True)
class Model:
    """A model: what `symad.trace` takes, and a point.

    Args:
        f: a SymPy object, a Graph, or a Python function together with ``inputs``.
        point: a value for each input, in order; modes are compared there.
        inputs: the inputs, in order.
        wrt: what to differentiate by: symbols, names or positions; all inputs by default.
        use: what is done with the model on data.
        check: what the certificate is about, if not the model: a small instance of it.
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
    """A named model and a line about it; ``quick`` ones make the short tour."""

    name: str
    about: str
    model: Callable[[], Model]
    quick: bool = False


STAGES: dict[str, Stage] = {}
"""All stages by name, in the order in which they run."""


def stage(name: str, about: str, quick: bool = False) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
    """Register a function that makes a model as a stage of the tour.

    Args:
        name: one word.
        about: what the stage shows, in a line.
        quick: true if it is one of the few that stand for all in ``symad tour --quick``.
    """

    def register(model: Callable[[], Model]) -> Callable[[], Model]:
        STAGES[name] = Stage(name, about, model, quick)
        return model

    return register


def all_stages() -> dict[str, Stage]:
    """The stages of all files in ``symad/cli/tour/stages``, files in order of name."""
    from symad.cli.tour import stages

    for module in sorted(m.name for m in pkgutil.iter_modules(stages.__path__)):
        importlib.import_module(f"{stages.__name__}.{module}")
    return STAGES
