"""``symad lower``, ``symad explain``, ``symad draw``."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from typing import Any

import symad
from symad.cli.exit_codes import OK
from symad.cli.load_models import ModelError, load_model
from symad.core.graph import Graph

DERIVATIVES = {
    "value": lambda g: g,
    "gradient": symad.gradient,
    "value-and-gradient": symad.value_and_gradient,
    "jacobian": symad.jacobian,
    "hessian": symad.hessian,
}


def _named(options: Namespace) -> Graph:
    """The model, or the derivative of it that was asked for."""
    name, graph = load_model(options.model, options.inputs)
    made: Graph = DERIVATIVES[options.of](graph)
    suffix = "" if options.of == "value" else "_" + options.of.replace("-", "_")
    return made.named(name + suffix)


def lower(options: Namespace) -> int:
    """Write code, into a file or to standard output."""
    from symad.numeric import lower as lower_graph

    log = _to_stderr if options.passes else None
    kernel = lower_graph(
        _named(options), backend=options.backend, dtype=options.dtype, style=options.style, log=log
    )
    if options.backend == "c" and not kernel.c_header:
        _to_stderr(_not_c(kernel))
    if options.output is None:
        print(kernel.c_source if kernel.c_header else kernel.source)
        return OK
    paths = [Path(options.output)]
    if paths[0].suffix == ".c" and kernel.c_header:
        paths.append(paths[0].with_suffix(".h"))
    for path in paths:
        kernel.save(path)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        print(f"{path}: {kernel.name}, {lines} lines, for {options.backend}")
    return OK


def _not_c(kernel: Any) -> str:
    """Why what is written is no C that stands alone."""
    if kernel.c_source:
        return f"symad: {kernel.name} has arrays: its file is Python, which compiles and calls C loops"
    return f"symad: {kernel.name} calls a function that C lacks, or no compiler works: its file is NumPy code"


def _to_stderr(line: str) -> None:
    """Notes stand apart from the code."""
    print(line, file=sys.stderr)


def explain(options: Namespace) -> int:
    """Print tables."""
    _, graph = load_model(options.model, options.inputs)
    texts = [text for given in options.at for text in re.split(r",(?=\s*\w+\s*=)", given)]
    tables = graph.explain(**dict(map(_assignment, texts)))
    print(getattr(tables, f"to_{options.format}")())
    return OK


def draw(options: Namespace) -> int:
    """Write a picture."""
    graph = _named(options)
    graph.draw(options.output)
    print(f"{options.output}: {graph.name}, {len(graph.nodes)} nodes")
    return OK


def _assignment(text: str) -> tuple[str, Any]:
    """``x=3``, ``x=1/3``, ``x=[1, 2.5]`` as a name and a value.

    Raises:
        ModelError: it is none of these.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ModelError(f"--at {text}: write a name and a value, as in --at x=3")
    try:
        return name.strip(), _value(value.strip())
    except (ValueError, ZeroDivisionError):
        raise ModelError(
            f"--at {text}: {value.strip()!r} is not a number, a fraction or a list of numbers"
        ) from None


def _value(text: str) -> Any:
    if text.startswith("["):
        return json.loads(text)
    return Fraction(text) if "/" in text else float(text)
