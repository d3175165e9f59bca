"""``symad lower``, ``symad explain``, ``symad draw``."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import symad
from symad.cli.console import OK
from symad.core.arrays import ArrayLike
from symad.core.graph import Graph
from symad.load_models import ModelError, load_model

DERIVATIVES: dict[str, Callable[..., Graph]] = {
    "gradient": symad.gradient,
    "value-and-gradient": symad.value_and_gradient,
    "jacobian": symad.jacobian,
    "hessian": symad.hessian,
}


def _named(options: Namespace, sizes: dict[str, int] | None = None) -> Graph:
    """The model at some sizes, or the requested derivative of it."""
    name, graph = load_model(options.model, options.inputs)
    if sizes:
        from symad.numeric.targets.sizes import numbers_of

        graph = graph.at(numbers_of(graph, sizes))
    if options.of == "value":
        if options.wrt:
            raise ModelError("--wrt is for derivatives: --of gradient, value-and-gradient, jacobian, hessian")
        return graph.named(name)
    made = DERIVATIVES[options.of](graph, wrt=options.wrt.split(",") if options.wrt else None)
    return made.named(f"{name}_{options.of.replace('-', '_')}")


def lower(options: Namespace) -> int:
    """Write code to a file or to standard output."""
    from symad.numeric import lower as lower_graph

    sizes = dict(map(size_of, options.sizes or ()))
    log = _to_stderr if options.passes else None
    if options.backend == "c" and Path(options.output or "").suffix != ".py":
        return _lower_c(options, sizes, log)
    if options.limit is not None:
        raise ModelError("--limit is for C that stands alone: --backend c, without -o or with -o OUT.c")
    if options.optimize < 2 and options.backend != "c":
        raise ModelError("--optimize is for --backend c with -o OUT.py, which a C compiler compiles")
    kernel = lower_graph(
        _named(options, sizes), backend=options.backend, dtype=options.dtype, style=options.style, log=log,
        name=options.name, optimize=options.optimize,
    )  # fmt: skip
    if options.output is None:
        print(kernel.source)
        return OK
    kernel.save(options.output)
    written = [Path(options.output)]
    if written[0].suffix == ".cu":
        written.append(written[0].with_suffix(".h"))
    for path in written:
        _told(options, path, kernel.name, path.read_text("utf-8"))
    return OK


def _lower_c(options: Namespace, sizes: dict[str, int], log: Callable[[str], None] | None) -> int:
    """Write standalone C, and its header beside it."""
    from symad.numeric import c_file
    from symad.numeric.entries.in_scalars import MAX_OPERATIONS

    if options.style != "fast" or options.dtype != "float64":
        raise ModelError(
            "C that stands alone is fast code in float64: leave out --style and --dtype; -o OUT.py writes "
            "NumPy code that compiles its loops, also in float32"
        )
    if options.optimize < 2:
        raise ModelError("--optimize is for -o OUT.py: who compiles C that stands alone gives options for it")
    limit = MAX_OPERATIONS if options.limit is None else options.limit
    made = c_file(_named(options), sizes, limit=limit, log=log, name=options.name)
    if options.output is None:
        print(made.source)
        return OK
    made.save(options.output)
    _told(options, options.output, made.name, made.source)
    _told(options, Path(options.output).with_suffix(".h"), made.name, made.header)
    return OK


def _told(options: Namespace, path: Path | str, name: str, text: str) -> None:
    print(f"{path}: {name}, {len(text.splitlines())} lines, for {options.backend}")


def size_of(text: str) -> tuple[str, int]:
    """Name and number from ``n=4``.

    Raises:
        ModelError: the text has another form.
    """
    name, _, number = text.partition("=")
    if not name.strip() or not number.strip().isdecimal():
        raise ModelError(f"--sizes {text}: write the name of a size and a number, as in n=4")
    return name.strip(), int(number)


def _to_stderr(line: str) -> None:
    """Notes are separate from the code."""
    print(line, file=sys.stderr)


def explain(options: Namespace) -> int:
    """Print tables, or write a page that steps through them."""
    _, graph = load_model(options.model, options.inputs)
    texts = [text for given in options.at for text in re.split(r",(?=\s*\w+\s*=)", given)]
    tables = graph.explain(**dict(map(_assignment, texts)))
    if options.play:
        first, *more = tables.play(options.play)
        print(f"{first} to {more[-1].name}: {len(more) + 1} files, one for each step" if more else first)
    else:
        print(getattr(tables, f"to_{options.format}")())
    return OK


def draw(options: Namespace) -> int:
    """Write a picture."""
    graph = _named(options)
    graph.draw(options.output)
    print(f"{options.output}: {graph.name}, {len(graph.nodes)} nodes")
    return OK


def _assignment(text: str) -> tuple[str, Any]:
    """``x=3``, ``x=1/3``, ``x=0.5``, ``x=[1, 2.5]`` as a name and a value: exact except for decimals.

    Raises:
        ModelError: the text has another form.
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


def _value(text: str) -> ArrayLike:
    if text.startswith("["):
        return json.loads(text)
    exact = Fraction if "/" in text else int if text.lstrip("+-").isdecimal() else float
    return exact(text)
