"""Contestants for gradients of scalar expressions: makers of functions that return the gradient at a point.

From an expression: symad's three backends, CasADi, SymEngine and SymPy; from arrays: JAX, PyTorch, autograd.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import natural_cases
import numpy as np
import sympy as sp

import symad
from benchmarks.machine import loaded
from symad.numeric import lower

Run = Callable[[], Any]


def ours(backend: str) -> Callable[[Any, Any, Any], Run]:
    """One backend of symad, packed."""

    def make(expression: Any, symbols: Any, x: Any) -> Run:
        gradient = symad.gradient(symad.trace(expression, symbols))
        if backend == "numpy":  # as with SymPy: Python floats in, a tuple of floats out
            values, plain = x.tolist(), lower(gradient).function
            return lambda: plain(*values)
        kernel = lower(gradient, backend=backend, packed=True)
        y = np.zeros(len(symbols))  # as with CasADi: through buffers, without copies
        call = kernel.bind(np.ascontiguousarray(x), y)

        def run() -> Any:
            call()
            return y

        return run

    return make


def casadi_graph(expression: Any, symbols: Any) -> tuple[Any, Any]:
    """The inputs and the value of an expression in CasADi (SX), built node by node."""
    import casadi as ca

    values: dict[Any, Any] = {s: ca.SX.sym(s.name) for s in symbols}
    functions = {
        sp.sin: ca.sin, sp.cos: ca.cos, sp.exp: ca.exp, sp.tanh: ca.tanh, sp.log: ca.log,
        symad.functions.sigmoid: lambda a: 1 / (1 + ca.exp(-a)),
    }  # fmt: skip
    for node in _order(expression):
        if node in values:
            continue
        args = [values[a] for a in node.args]
        if isinstance(node, sp.Add):
            values[node] = sum(args[1:], args[0])
        elif isinstance(node, sp.Mul):
            values[node] = math.prod(args[1:], start=args[0])
        elif isinstance(node, sp.Pow):
            values[node] = ca.sqrt(args[0]) if node.exp == sp.Rational(1, 2) else args[0] ** float(node.exp)
        elif node.is_number:
            values[node] = float(node)
        else:
            values[node] = functions[node.func](*args)
    return ca.vertcat(*(values[s] for s in symbols)), values[expression]


def casadi_sx(expression: Any, symbols: Any, x: Any) -> Run:
    """CasADi: the gradient, evaluated through buffers."""
    import casadi as ca

    inputs, value = casadi_graph(expression, symbols)
    return through_buffers(ca.Function("f", [inputs], [ca.gradient(value, inputs)]), x)


def through_buffers(function: Any, x: Any) -> Run:
    """A CasADi function of one vector, called without copies."""
    buffer, call = function.buffer()
    result = np.zeros(function.nnz_out(0))
    views = memoryview(np.ascontiguousarray(x)), memoryview(result)
    buffer.set_arg(0, views[0])
    buffer.set_res(0, views[1])
    alive = function, buffer, views  # the buffer holds only their addresses

    def run() -> Any:
        call()
        return result if alive else None

    return run


def _order(expression: Any) -> list[Any]:
    """Distinct subexpressions, arguments first."""
    seen: dict[Any, None] = {}
    stack = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            seen[node] = None
        elif node not in seen:
            stack.append((node, True))
            stack.extend((a, False) for a in node.args if a not in seen)
    return list(seen)


def by_symengine(expression: Any, symbols: Any, x: Any) -> Run:
    """SymEngine: its own derivative, cse, LLVM."""
    import symengine as se

    if len(_order(expression)) > 1000:  # the call into LLVM cannot be interrupted
        raise TimeoutError
    e, s = se.sympify(expression.doit()), [se.Symbol(v.name) for v in symbols]
    function = se.Lambdify(s, [e.diff(v) for v in s], cse=True, backend="llvm")
    return lambda: function(x)


def by_sympy(expression: Any, symbols: Any, x: Any) -> Run:
    """SymPy: diff, then lambdify with cse."""
    function = sp.lambdify(symbols, [expression.diff(s) for s in symbols], "math", cse=True)
    values = x.tolist()
    return lambda: function(*values)


def jax_graph(expression: Any, symbols: Any, x: Any) -> Run:
    """JAX: jit of the gradient of the same scalar graph."""
    import jax

    modules = [{"sigmoid": jax.nn.sigmoid}, jax.numpy]
    plain = sp.lambdify(symbols, expression, modules, cse=True)
    function = jax.jit(jax.grad(lambda v: plain(*v)))
    values = jax.numpy.asarray(x)
    return lambda: jax.block_until_ready(function(values))


def by_jax(name: str, x: Any) -> Run:
    """JAX: jit of the gradient of array code."""
    import jax

    function, values = jax.jit(jax.grad(natural_cases.NATURAL[name](jax.numpy))), jax.numpy.asarray(x)
    return lambda: jax.block_until_ready(function(values))


def by_torch(name: str, x: Any) -> Run:
    """PyTorch: autograd of array code."""
    import torch

    torch.set_num_threads(1)
    function, values = natural_cases.NATURAL[name](torch), torch.tensor(x, requires_grad=True)
    return lambda: torch.autograd.grad(function(values), values)[0]


def by_autograd(name: str, x: Any) -> Run:
    """HIPS autograd of array code."""
    import autograd

    gradient = autograd.grad(natural_cases.NATURAL[name](autograd.numpy))
    return lambda: gradient(x)


CONTESTANTS: dict[str, Callable[[Any, Any, Any], Run]] = {
    "numpy": ours("numpy"),
    "runs": ours("runs"),
    "c": ours("c"),
    "casadi": casadi_sx,
    "symengine": by_symengine,
    "sympy": by_sympy,
}
FROM_ARRAYS: dict[str, Callable[[str, Any], Run]] = {
    "jax": by_jax,
    "torch": by_torch,
    "autograd": by_autograd,
}
PEERS = ("casadi", "symengine", "jax", "torch", "autograd")
"""The contestants that are libraries of their own."""


def present(contestants: dict[str, Any]) -> dict[str, Any]:
    """Those contestants that can be loaded on this machine."""
    return {who: make for who, make in contestants.items() if who not in PEERS or loaded(who)}
