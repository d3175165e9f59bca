"""The printer of scalar expressions: every target computes the values of the graph."""

import random
import subprocess

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, Node
from symad.errors import LoweringError
from symad.numeric.compiled_arrays.c.c_body import NativeBody
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.fusion.c_expressions import KernelBody, statements
from symad.numeric.modules.module_text import Names
from symad.numeric.program.expressions import Compute, Read, Value
from symad.numeric.targets.c_functions import SCALAR_C as C99
from symad.numeric.targets.c_functions import helper_source
from symad.numeric.targets.c_module import CWriter
from symad.numeric.targets.target import NUMPY
from symad.numeric.targets.writer import Writer
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select

NAMES = ("x", "y", "z")
VALUES = (0.7, -1.3, 2.5)
over = pytest.mark.parametrize


def number(value):
    return Compute(constant(value).op, (), ())


def compute(op, *args):
    return Compute(op, args, ())


def drawn(rng, depth, variables):
    """A random expression with a real value."""
    kind = rng.randrange(9) if depth else rng.randrange(2)
    if kind == 0 or not depth:
        return rng.choice(variables)
    if kind == 1:
        return number(rng.choice([2, -3, 0.5, -0.0, 1e-300, sp.Rational(1, 3), sp.Rational(-2, 7)]))

    def inner():
        return drawn(rng, depth - 1, variables)

    if kind in (2, 3):
        count = rng.randrange(1, 4)
        return compute(
            Add(tuple(rng.choice([1, -1]) for _ in range(count))), *(inner() for _ in range(count))
        )
    if kind in (4, 5):
        count = rng.randrange(1, 4)
        return compute(
            Mul(tuple(rng.choice([1, 1, -1]) for _ in range(count))), *(inner() for _ in range(count))
        )
    if kind == 6:
        return compute(Pow(), inner(), number(rng.choice([2, 3])))
    if kind == 7:
        return compute(Apply(rng.choice([sp.sin, sp.tanh, sp.Abs])), inner())
    condition = compute(Compare(rng.choice(["<", "<=", "!="])), inner(), inner())
    for _ in range(rng.randrange(3)):
        other = compute(Compare("<"), inner(), inner())
        condition = compute(Logic(rng.choice(["and", "or", "xor"])), condition, other)
    if rng.random() < 0.3:
        condition = compute(Logic("not"), condition)
    return compute(Select(), condition, inner(), inner())


def node_of(expression, inputs):
    if isinstance(expression, Read):
        return inputs[expression.value]
    return Node.of(expression.op, tuple(node_of(a, inputs) for a in expression.args))


def expressions(count=60):
    rng = random.Random(7)
    values = [Value(name, ()) for name in NAMES]
    reads = [Read(v) for v in values]
    nodes = {v: symad.trace(sp.Symbol(v.stem)).output_nodes[0] for v in values}
    for _ in range(count):
        expression = drawn(rng, 4, reads)
        with np.errstate(all="ignore"):
            yield expression, Graph(tuple(nodes.values()), (node_of(expression, nodes),))(*VALUES)


def text(expression, target, dtype="float64"):
    return (c_writer() if target is C99 else Writer(target, dtype, Names())).text(expression).text


def c_writer():
    """A writer of C code in which x and y are called x and y, as are the arrays of a module."""
    writer = CWriter()
    writer.names = Names()
    return writer


CASES = [(e, v) for e, v in expressions() if np.isfinite(float(v)) and abs(v) < 1e6]


def test_there_are_many_cases():
    assert len(CASES) > 25


def test_python_computes_what_the_graph_does():
    names = dict(zip(NAMES, map(np.float64, VALUES), strict=True)) | {"np": np}
    for expression, expected in CASES:
        written = text(expression, NUMPY)
        np.testing.assert_allclose(float(eval(written, names)), float(expected), rtol=1e-12, err_msg=written)


@pytest.mark.skipif(not compiler(), reason="needs a C compiler")
def test_c_computes_what_the_graph_does(tmp_path):
    writer = c_writer()
    body = "\n".join(f'printf("%.17g\\n", (double)({writer.text(e)}));' for e, _ in CASES)
    given = "".join(f"volatile double {n} = {v};" for n, v in zip(NAMES, VALUES, strict=True))
    head = "".join(f"#include <{name}.h>\n" for name in ("math", "stdio", "stddef", "string"))
    source = f"{head}{helper_source(writer.called)}int main(void) {{ {given}\n{body}\nreturn 0; }}\n"
    (tmp_path / "a.c").write_text(source)
    command = [*compiler(), "-std=c99", "-O0", "-o", str(tmp_path / "a"), str(tmp_path / "a.c"), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    lines = subprocess.run([str(tmp_path / "a")], check=True, capture_output=True, text=True).stdout.split()
    np.testing.assert_allclose([float(x) for x in lines], [float(v) for _, v in CASES], rtol=1e-12)


@over("head", [sp.sin, sp.sec, sp.Max], ids=lambda head: head.__name__)
def test_kernels_call_functions_of_their_precision(head):
    symbols = sp.symbols("x y")[: 2 if head is sp.Max else 1]
    graph = symad.trace(head(*symbols) + sp.Rational(1, 2), inputs=list(symbols))
    written = {
        sp.sin: ("sinf(x)", "symad_sin(x)"),
        sp.sec: ("1 / cosf(x)", "1 / symad_cos(x)"),
        sp.Max: ("symad_max(x, y)", "symad_max(x, y)"),
    }[head]
    for body, expected in zip((KernelBody("float"), NativeBody("float")), written, strict=True):
        names = {node: str(symbol) for node, symbol in zip(graph.input_nodes, symbols, strict=True)}
        statements(graph.output_nodes, names, body)
        assert body.lines == [f"const float w0 = {expected};", "const float w1 = 0.5f + w0;"]


x, y, z = (Read(Value(name, ())) for name in NAMES)
SPELLED = [
    (compute(Add((1, -1)), x, compute(Add((1, 1)), y, z)), "x - (y + z)", "x - (y + z)"),
    (compute(Add((1, 1)), x, compute(Add((1, 1)), y, z)), "x + (y + z)", "x + (y + z)"),
    (compute(Add((1, 1)), compute(Add((1, 1)), x, y), z), "x + y + z", "x + y + z"),
    (compute(Mul((1, -1, -1)), x, y, z), "x/(y*z)", "x/(y*z)"),
    (compute(Mul((1, 1)), x, compute(Mul((1, -1)), y, z)), "x*(y/z)", "x*(y/z)"),
    (compute(Add((-1,)), compute(Pow(), x, number(2))), "-x**2", "-(x*x)"),
    (compute(Pow(), compute(Add((-1,)), x), number(2)), "(-x)**2", "pow(-x, 2.0)"),
    (compute(Mul((1, 1)), number(sp.Rational(1, 3)), x), "1/3*x", "1.0/3.0*x"),
    (compute(Mul((1, 1)), x, number(sp.Rational(1, 3))), "x*(1/3)", "x*(1.0/3.0)"),
    (compute(Mul((1, 1)), x, number(-2)), "x*-2", "x*-2.0"),
    (number(float("inf")), "np.inf", "INFINITY"),
    (number(float("-inf")), "-np.inf", "-INFINITY"),
    (number(float("nan")), "np.nan", "NAN"),
    (number(-0.0), "-0.0", "-0.0"),
    (number(0.1), "0.1", "0.1"),
    (number(2**70), repr(float(2**70)), repr(float(2**70))),
    (compute(Pow(), x, number(sp.Rational(1, 2))), "np.sqrt(x)", "sqrt(x)"),
]


@over(("expression", "numpy", "c"), SPELLED, ids=[case[1] for case in SPELLED])
def test_spelling(expression, numpy, c):
    assert (text(expression, NUMPY), text(expression, C99)) == (numpy, c)


@over("value", [0.1, 1e-310, 2.0**-1074, 1.7976931348623157e308, sp.Rational(1, 3), sp.pi, 3, -7])
def test_constants_are_exact(value):
    found = eval(text(number(value), NUMPY), {"np": np})
    assert float(found) == float(value)


def test_a_function_without_a_form_is_named():
    with pytest.raises(LoweringError, match=r"zeta.*'c'"):
        text(compute(Apply(sp.zeta), x), C99)
