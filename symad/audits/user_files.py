"""Claims in a user's file: groups, claims at module level, autograd functions of PyTorch with a formula."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from symad.audits.claims import GROUPS, Claim, Group
from symad.load_models import ModelError, run_file

if TYPE_CHECKING:
    import torch

Found = Mapping[str, Group]
"""The declarations of a file by name; each makes its claims when it is called."""

HOW = "a group of claims (symad.audits.group), a Claim, or a torch.autograd.Function with a formula"


def declared(path: Path, name: str | None) -> Found:
    """The declarations of a file, or the one with this name. The file is run.

    Raises:
        ModelError: the file fails, or declares nothing, or nothing with this name.
    """
    before = {package: len(groups) for package, groups in GROUPS.items()}
    namespace = run_file(path)
    made = [g for package, groups in GROUPS.items() for g in groups[before.get(package, 0) :]]
    found: dict[str, Group] = {g.__name__: g for g in made}
    for key, value in namespace.items():
        if isinstance(value, Claim):
            found[key] = partial(iter, (value,))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Claim) for v in value):
            found[key] = partial(iter, value)
        elif _is_autograd(value) and (hasattr(value, "formula") or key == name):
            found[key] = partial(of_autograd, value)
    if name is None and found:
        return found
    if name in found:
        return {name: found[name]}
    known = f"it declares {', '.join(found)}" if found else "it declares nothing that can be audited"
    asked = "" if name is None else f"no {name!r}; "
    raise ModelError(f"{path.name}: {asked}{known}. What can be audited is {HOW}")


def _is_autograd(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, type) and issubclass(value, torch.autograd.Function)


def of_autograd(function: type[torch.autograd.Function]) -> Iterator[Claim]:
    """The values of an autograd function of PyTorch, the result of its backward, and its double backward.

    The class attribute ``formula`` is the function it computes: SymPy, or another argument of `symad.trace`;
    attributes ``inputs`` and ``where`` are options of `symad.verify`.

    Raises:
        TypeError: it has no formula.
    """
    from symad.torch.passes import Passes
    from symad.torch.verifying import cotangents
    from symad.tracing import as_graph

    name = function.__name__
    formula = inspect.getattr_static(function, "formula", None)
    if formula is None:
        raise TypeError(
            f"{name} has no formula: give the class an attribute formula, a SymPy expression of its inputs"
        )
    formula = formula.__func__ if isinstance(formula, staticmethod) else formula
    graph = as_graph(formula, None, getattr(function, "inputs", None))
    passes = Passes(function.apply, graph, None)
    where = getattr(function, "where", None)
    options = {} if where is None else {"where": where}
    yield Claim(f"{name}.forward", "value", graph, passes.forward, None, options, source="formula")
    yield Claim(f"{name}.backward", "vjp", graph, passes.backward, None, options, source="formula")
    second = cotangents(graph, None)
    yield Claim(
        f"{name}, double backward",
        "vjp",
        second,
        passes.double_backward,
        None,
        options,
        source="backward pass",
    )
