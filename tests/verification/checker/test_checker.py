"""The checker: what it proves and refutes, and that it imports only the graph and the ops of symad."""

from __future__ import annotations

import ast
import copy
import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.core.graph import Graph, TupleOf, topological
from symad.errors import SavingError
from symad.higher_order.affine_scan import AffineScan
from symad.numbers.values import unchecked
from symad.op_examples import EXAMPLES
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant
from symad.tracing import as_graph
from symad.verification import Certificate, tactics
from symad.verification.checker import terms as functions
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Refused, Terms, needed
from symad.verification.checker.writing_out import RULES, Writing
from symad.verification.proof import with_proofs
from symad.verification.proof.checksum import digest_of, is_damaged
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import find
from symad.verification.proof.with_proofs import claims_of
from symad.verification.users import fit, with_inputs_of
from tests.pairs.generate import FAMILIES, pairs

FOLDER = Path(symad.__file__).parent / "verification" / "checker"
x, y, z = sp.symbols("x y z", real=True)
p, q = sp.symbols("p q", positive=True)
A = sp.MatrixSymbol("A", 2, 3)
v = sp.MatrixSymbol("v", 3, 1)

FUNCTIONS = {
    "polynomial": x**2 * y + 3 * x * y**3,
    "rational": x / (y + z) ** 2 + 1 / (x + 1 / y),
    "Gauss": sp.exp(-(x**2) / 2) * sp.cos(3 * x + y),
    "tanh": sp.tanh(x * y + z),
    "roots and logarithms": sp.log(p * q) + sp.sqrt(p / q) * x,
    "a norm": sp.sqrt(x**2 + y**2 + 1),
    "logistic": sp.log(1 + sp.exp(-x * y)),
    "Rosenbrock": 100 * (y - x**2) ** 2 + (1 - x) ** 2 + 100 * (z - y**2) ** 2 + (1 - y) ** 2,
    "absolute value": sp.Abs(x * y) * z,
    "maximum": sp.Max(x, y) * z + sp.Max(x, 0) ** 2,
    "cases": sp.Piecewise((x**2, x > 0), (x * y, True)),
    "inverse": sp.atan2(y, x) + sp.asin(x),
    "power": p**y,
    "error function": sp.erf(x * y),
    "log gamma": sp.loggamma(p) * x,
    "units": symad.functions.sigmoid(x * y) * symad.functions.softplus(z),
    "least squares": ((A * v).T * (A * v))[0, 0],
}


def goals_of(claim):
    return [(0, o, e) for o, n in enumerate(claim.outputs) for e in range(int(np.prod(n.shape, dtype=int)))]


LIMITS = Limits(200_000, 4000)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_proved_and_replayed_without_the_finder(name, monkeypatch):
    certificate = symad.check(FUNCTIONS[name], seed=1)
    assert certificate.status == "proved" and certificate.checked, str(certificate)
    assert f"replays {certificate.proof_steps} steps: all proved entries" in str(certificate)
    read = Certificate.from_json(certificate.to_json())

    def nobody(*args):
        raise AssertionError("the finder was asked")

    for name in ("find", "find_for_all_sizes"):
        monkeypatch.setattr(with_proofs, name, nobody)
    monkeypatch.setattr(tactics, "compare_nodes", nobody)
    again = read.recheck()
    assert again.checked and again.proof_steps == certificate.proof_steps > 0
    assert [e.label for e in again.entries] == [e.label for e in certificate.entries]


WRONG = {
    "a factor": lambda e, s: 2 * e,
    "a sign": lambda e, s: -e,
    "a term": lambda e, s: e + s,
    "a rounding": lambda e, s: e * sp.Rational(10**6 + 1, 10**6),
    "nothing": lambda e, s: sp.Integer(0),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "least squares"])
def test_a_wrong_derivative_has_no_proof(name, fault):
    f = FUNCTIONS[name]
    graph = as_graph(f)
    symbol = graph.inputs[0]
    wrong = with_inputs_of(graph, as_graph(WRONG[fault](f.diff(symbol), symbol)))
    claim = Derived(Derivative("gradient", graph.output_nodes, graph.input_nodes[:1]), wrong.output_nodes)
    assert find([claim], [(0, 0, 0)], LIMITS).proofs == ()


def leaves(value, path=()):
    """The positions of all numbers and names in nested lists."""
    if isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            yield from leaves(item, (*path, k))
    elif value is not None:
        yield path


def changed(steps, path):
    made = copy.deepcopy(steps)
    *way, last = path
    place = made
    for k in way:
        place = place[k]
    place[last] = place[last] + 1 if isinstance(place[last], int) else "name"
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Gauss", "roots and logarithms", "logistic", "maximum", "cases", "power"])
def test_every_changed_step_is_found(name):
    certificate = symad.check(FUNCTIONS[name], seed=1)
    claims = claims_of(certificate.comparisons)
    refused, harmless = 0, 0
    for proof in certificate.proofs:
        steps = [list(step) for step in proof.steps]
        every = [changed(steps, path) for path in leaves(steps)]
        every += [steps[:k] + steps[k + 1 :] for k in range(len(steps))]
        for made in every:
            if made == steps:
                continue
            assert is_damaged(replace(proof, steps=tuple(made)))
            try:  # somebody who knows how the checksum is made
                replay(claims, replace(proof, steps=tuple(made), digest=digest_of(proof.goals, made)))
                harmless += 1  # the same normal forms follow without this step
            except Refused:
                refused += 1
    assert refused > 10 and harmless < refused


def test_a_proof_of_another_function_is_refused(monkeypatch):
    true, false = (
        symad.check(x * sp.exp(y), seed=1),
        symad.verify(x * sp.exp(y), x, gradient=2 * sp.exp(y), seed=1),
    )
    good = json.loads(symad.verify(x * sp.exp(y), x, gradient=sp.exp(y), seed=1).to_json())
    bad = json.loads(false.to_json())
    forged = {**good, "comparisons": [{**good["comparisons"][0], "graph": bad["comparisons"][0]["graph"]}]}
    del forged["comparisons"][0]["derivative"]
    with pytest.raises(SavingError, match="damaged"):
        Certificate.from_json(json.dumps(forged))
    again = Certificate.from_json(json.dumps({**good, "comparisons": bad["comparisons"]})).recheck()
    assert again.status == "refuted" and not again.checked
    assert any("refused" in note for note in again.notes)
    assert true.checked


n, m, k = sp.symbols("n m k", integer=True, positive=True)
B, C, u = sp.MatrixSymbol("B", n, m), sp.MatrixSymbol("C", m, k), sp.MatrixSymbol("u", m, 1)
ALL_SIZES = {
    "a trace": sp.Trace(sp.MatrixSymbol("X", n, n) ** 3),
    "least squares": ((B * u).T * (B * u))[0, 0],
    "a squared norm": symad.trace(lambda B, C: ((B @ C) ** 2).sum(), [B, C]),
    "sigmoids": symad.trace(lambda B, u: symad.functions.sigmoid(B @ u).sum(), [B, u]),
    "two layers": symad.trace(lambda B, C: np.tanh(np.tanh(B @ C)).sum(), [B, C]),
    "log-sum-exp": symad.trace(lambda B, u: symad.functions.logsumexp((B @ u)[:, 0]), [B, u]),
    "a ratio": symad.trace(lambda u, w: (u * w).sum() / (u**2).sum(), [u, sp.MatrixSymbol("w", m, 1)]),
}


@pytest.mark.parametrize("name", ALL_SIZES)
def test_gradients_are_proved_for_all_sizes_and_wrong_ones_are_not(name):
    graph = as_graph(ALL_SIZES[name])
    right = symad.gradient(graph).output_nodes
    derivative = Derivative("gradient", graph.output_nodes, graph.input_nodes)
    goals = [(0, o, 0) for o in range(len(right))]
    found = find_for_all_sizes([Derived(derivative, right)], goals)
    assert found.goals == set(goals), found.reasons
    wrong = tuple(mul(constant(2), r) for r in right)
    assert find_for_all_sizes([Derived(derivative, wrong)], goals).proofs == ()
    shifted = tuple(add(r, x) for r, x in zip(right, graph.input_nodes, strict=True))
    assert find_for_all_sizes([Derived(derivative, shifted)], goals).proofs == ()
    for proof in found.proofs:
        assert replay([Derived(derivative, right)], proof) > 0
        for claim in (Derived(derivative, wrong), Derived(derivative, shifted)):
            with pytest.raises(Refused):
                replay([claim], proof)
        steps = [list(step) for step in proof.steps]
        for path in leaves(steps):
            made = changed(steps, path)
            with pytest.raises(Refused):
                replay(
                    [Derived(derivative, right)],
                    replace(proof, steps=tuple(made), digest=digest_of(proof.goals, made)),
                )


def test_certificates_for_all_sizes_are_replayed():
    certificate = symad.verify(ALL_SIZES["a trace"], gradient=3 * (sp.MatrixSymbol("X", n, n) ** 2).T)
    assert certificate.status == "proved" and certificate.checked
    again = Certificate.from_json(certificate.to_json()).recheck()
    assert again.checked and "for all n" in again.entries[0].claim


def test_what_is_not_replayed_is_said():
    sides = [symad.trace(f, [(n, n)]) for f in (lambda z: z.T.max(0), lambda z: z.max(1))]
    certificate = symad.equal(*sides, seed=1)
    assert certificate.status == "measured" and not certificate.checked
    (entry,) = certificate.entries
    assert "n = 3" in entry.claim and "of other sizes nothing is known" in entry.reason


k_int = sp.Symbol("k", integer=True)
FALSE = [
    (sp.Piecewise((1 / sp.Heaviside(x), x > 0), (5, True)), sp.Piecewise((1, x > 0), (7, True))),
    (sp.Piecewise((1 / x, x > 0), (5, True)), sp.Piecewise((1 / x, x > 0), (7, True))),
    (sp.Piecewise((sp.sqrt(x) ** 2, x > 0), (1, True)), sp.Piecewise((x, x > 0), (2, True))),
    (sp.Piecewise((1, sp.Eq(sp.Max(x, 0), 0)), (0, True)), 0 * x),
    (sp.Piecewise((1, sp.Max(x, 0) > 0), (0, True)), sp.Piecewise((1, sp.Max(x, 0) >= 0), (0, True))),
    (sp.sign(sp.Max(x, 0)) ** 2, 1 + 0 * x),
    (sp.sqrt(x**2), x),
    (sp.sqrt(x**2 * y), x * sp.sqrt(y)),
    (sp.sqrt((x - 1) ** 2), x - 1),
    (sp.Max(x, 0), x),
    (sp.asin(sp.sin(x)), x),
    (sp.atan(sp.tan(x)), x),
    (sp.sign(k_int) ** 2, 1 + 0 * k_int),
    (sp.exp(x / 2) ** 2, sp.exp(2 * x)),
    (sp.sec(x) ** 2, 1 - sp.tan(x) ** 2),
]
TRUE = [
    (sp.Max(x, y) + sp.Min(x, y), x + y),
    (sp.sqrt(x**2), sp.Abs(x)),
    (sp.exp(x / 2) ** 2, sp.exp(x)),
    (sp.sqrt(sp.exp(x)), sp.exp(x / 2)),
    (sp.sec(x) ** 2, 1 + sp.tan(x) ** 2),
    (sp.cosh(x) ** 2 - sp.sinh(x) ** 2, 1 + 0 * x),
    (sp.sin(x + y), sp.sin(x) * sp.cos(y) + sp.cos(x) * sp.sin(y)),
    (sp.cos(x + sp.pi), -sp.cos(x)),
    (sp.tanh(x), (sp.exp(2 * x) - 1) / (sp.exp(2 * x) + 1)),
    (sp.log(1 + sp.exp(x)) - x, sp.log(1 + sp.exp(-x))),
    (sp.Abs(x * y), sp.Abs(x) * sp.Abs(y)),
    (sp.Piecewise((x, x > y), (y, True)), sp.Max(x, y)),
    (sp.Heaviside(x) ** 2, sp.Heaviside(x)),
    (sp.sqrt(4 * x**2 + 4), 2 * sp.sqrt(x**2 + 1)),
]


@pytest.mark.parametrize(("pair", "true"), [(p, True) for p in TRUE] + [(p, False) for p in FALSE], ids=str)
def test_relations_are_used_only_where_they_hold(pair, true):
    left = as_graph(pair[0])
    right = with_inputs_of(left, as_graph(pair[1]))
    claim = Derived(Derivative("value", left.output_nodes), right.output_nodes)
    assert bool(find([claim], [(0, 0, 0)], LIMITS).proofs) is true


@pytest.mark.thorough
@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"users", "mechanisms"}))
def test_no_pair_that_differs_has_a_proof(family):
    """The finder alone, without any evaluation at points behind it."""
    different = 0
    for pair in pairs(120, 7, (family,)):
        left = as_graph(pair.left)
        right = with_inputs_of(left, as_graph(pair.right))
        outputs = tuple(fit(b, a) for b, a in zip(right.output_nodes, left.output_nodes, strict=True))
        claim = Derived(Derivative("value", left.output_nodes), outputs)
        if pair.equal or any(not isinstance(d, int) for o in outputs for d in o.shape):
            continue
        different += 1
        wanted = goals_of(claim)
        assert len(find([claim], wanted, LIMITS).goals) < len(wanted), pair.text
    assert different > 20


# ---- the tables ---------------------------------------------------------------------------------------

NAMES = {
    "digamma": mpmath.digamma, "LambertW": mpmath.lambertw, "gamma": mpmath.gamma,
    "polygamma": lambda n, t: mpmath.polygamma(int(n), t),
    "loggamma": mpmath.loggamma, "log": mpmath.log, "abs": mpmath.fabs, "sign": mpmath.sign, "max": max,
    "min": min, "floor": mpmath.floor, "ceiling": mpmath.ceil,
    "Heaviside": lambda t: (mpmath.sign(t) + 1) / 2,
    "pi": lambda: mpmath.pi, "less": lambda a, b: int(a < b),
    "equal": lambda a, b: int(a == b), "pow": mpmath.power, "sigmoid": lambda t: 1 / (1 + mpmath.exp(-t)),
    "softplus": lambda t: mpmath.log(1 + mpmath.exp(t)), "select": lambda c, a, b: a if c else b,
    "sinc": lambda t: mpmath.sin(t) / t, "log1p": mpmath.log1p, "expm1": mpmath.expm1,
    "exp2": lambda t: mpmath.power(2, t), "log2": lambda t: mpmath.log(t, 2), "log10": mpmath.log10,
    "sqrt": mpmath.sqrt, "hypot": mpmath.hypot, "relu": lambda t: max(t, 0),
    "logaddexp": lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    "silu": lambda t: t / (1 + mpmath.exp(-t)), "gelu": lambda t: t * mpmath.ncdf(t),
    "logcosh": lambda t: mpmath.log(mpmath.cosh(t)), "real": lambda t: int(mpmath.isfinite(t)),
    "inverse": lambda i, j, *a: (square(a) ** -1)[int(i), int(j)],
    "cholesky": lambda i, j, *a: mpmath.cholesky(square(a))[int(i), int(j)],
    "det": lambda i, j, *a: mpmath.det(square(a)),
}  # fmt: skip


def square(elements):
    """A square matrix from its elements, row by row."""
    n = math.isqrt(len(elements))
    return mpmath.matrix([list(elements[k * n : k * n + n]) for k in range(n)])


def value(term, point):
    """A term in mpmath, without symad."""
    values = {}
    for t in needed([term]):
        args = [values[a] for a in t.args]
        if t.kind == "number":
            values[t] = mpmath.mpf(t.data.numerator) / t.data.denominator
        elif t.kind == "variable":
            values[t] = point[t.data]
        elif t.kind in ("sum", "product"):
            values[t] = (mpmath.fsum if t.kind == "sum" else mpmath.fprod)(args)
        elif t.kind == "power":
            values[t] = mpmath.power(args[0], mpmath.mpf(t.data.numerator) / t.data.denominator)
        else:
            name, *places = t.data if isinstance(t.data, tuple) else (t.data,)
            values[t] = (NAMES.get(name) or getattr(mpmath, name))(*places, *args)
    return values[term]


DOMAINS = {"asin": 0.4, "acos": 0.3, "atanh": 0.4, "acosh": 1.7, "log": 0.6, "gamma": 1.3, "loggamma": 2.3}
TWO = {"atan2", "pow", "max", "min", "less", "equal", "hypot", "logaddexp"}


ORDERED = {"polygamma", "besselj", "bessely", "besseli", "besselk", "expint"}


def arguments(name):
    terms = Terms()
    if name in ORDERED:
        return [terms.term(2), terms.made("variable", "a")], {"a": mpmath.mpf("0.8")}
    if name == "select":
        return [terms.made("variable", k) for k in "cab"], {
            "c": 1,
            "a": mpmath.mpf("0.7"),
            "b": mpmath.mpf(3),
        }
    names = ("a", "b") if name in TWO else ("a",)
    at = {"a": mpmath.mpf(DOMAINS.get(name, "0.37")), "b": mpmath.mpf("0.85")}
    return [terms.made("variable", k) for k in names], at


@pytest.mark.parametrize("name", functions.DERIVATIVES)
def test_derivatives_of_the_table_are_those_of_mpmath(name):
    args, point = arguments(name)
    with mpmath.workdps(50):
        for k, partial in enumerate(functions.DERIVATIVES[name](*args)):
            if partial is None:
                assert name in ORDERED and k == 0
                continue
            whole = functions.call(name, *args)
            key = args[k].data
            slope = mpmath.diff(lambda t, key=key, whole=whole: value(whole, {**point, key: t}), point[key])
            assert abs(slope - value(partial, point)) < mpmath.mpf(10) ** -20


@pytest.mark.parametrize("name", [*functions.DEFINITIONS, *functions.ALWAYS])
def test_definitions_of_the_table_have_the_values_of_mpmath(name):
    args, point = arguments(name)
    made = {**functions.DEFINITIONS, **functions.ALWAYS}[name](*args)
    with mpmath.workdps(50):
        for turn in (1, -1) if name in functions.ODD | functions.EVEN | {"max", "min", "less"} else (1,):
            at = {k: t * turn for k, t in point.items()}
            assert abs(value(functions.call(name, *args), at) - value(made, at)) < mpmath.mpf(10) ** -40


def test_parities_and_signs_of_the_table_hold():
    t = mpmath.mpf("0.37")
    for names, turn in ((functions.ODD, -1), (functions.EVEN, 1)):
        for name in names:
            f = NAMES.get(name) or getattr(mpmath, name)
            assert abs(f(-t) - turn * f(t)) < 1e-12
    for name in functions.POSITIVE - {"pi"}:
        f = NAMES.get(name) or getattr(mpmath, name)
        assert all(f(mpmath.mpf(k) / 3) > 0 for k in range(-20, 20))


NAMED = sorted((op for op in RULES if op in EXAMPLES), key=lambda op: op.__name__)
WRITTEN = [(op, k) for op in NAMED for k in range(len(EXAMPLES[op]()))]


@pytest.mark.parametrize(("op", "k"), WRITTEN, ids=[f"{op.__name__} {k}" for op, k in WRITTEN])
def test_rules_of_ops_have_the_values_of_their_evaluation(op, k):
    node = EXAMPLES[op]()[k]
    rng = np.random.default_rng(3)
    inputs = [n for n in topological([node]) if type(n.op).__name__ == "Input"]
    sizes = [d for n in [node, *inputs] for d in n.shape] + [getattr(node.op, "expression", 1)]
    if any(not isinstance(d, int) for d in sizes):
        pytest.skip("sizes are symbols")
    values = {n: rng.uniform(0.5, 0.9, n.shape) for n in inputs}
    try:
        written = Writing(Terms()).elements([node])
    except Refused as reason:
        pytest.skip(str(reason))
    (expected,) = unchecked([node], values)
    point = {
        (n.op, index): mpmath.mpf(float(a[index])) for n, a in values.items() for index in np.ndindex(a.shape)
    }
    got = np.array([float(value(t, point)) for t in written]).reshape(node.shape)
    np.testing.assert_allclose(got, np.asarray(expected, dtype=float), rtol=1e-10, atol=1e-12)


# ---- the checker stands alone -------------------------------------------------------------------------

ALLOWED = (
    "symad.core.claims", "symad.core.graph", "symad.core.dims", "symad.ops.", "symad.higher_order",
    "symad.sympy_functions",
    "symad.verification.checker",
)  # fmt: skip


def test_the_checker_is_small():
    """All lines count: code, docstrings, comments and blank ones."""
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in FOLDER.glob("*.py")}
    assert sum(lines.values()) <= 1900, lines
    assert max(lines.values()) <= 400
    pages = FOLDER.parents[2] / "docs"
    for page in ("trust.md", "certificates.md"):
        told = re.search(r"about (\d),(\d{3})\s+lines", (pages / page).read_text("utf-8"))
        assert abs(int(told[1] + told[2]) - sum(lines.values())) <= 100
    proofs = (pages / "reference" / "proofs.md").read_text("utf-8")
    files = re.findall(r"^\| `(\w+)` \|", proofs, re.MULTILINE)
    assert {f"{name}.py" for name in files} == lines.keys() - {"__init__.py"}


def decisions(function):
    """One more than the branches, loops and parts of conditions of a function."""
    kinds = ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension
    nodes = list(ast.walk(function))
    parts = sum(len(n.values) - 1 for n in nodes if isinstance(n, ast.BoolOp))
    return 1 + parts + sum(isinstance(n, kinds) for n in nodes)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_each_function_of_the_checker_is_short(path):
    made = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)]
    long = {n.name: count for n in made if (count := decisions(n)) > 15}
    assert not long


def test_the_checker_imports_the_graph_the_ops_and_nothing_else_of_symad():
    found = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{a.name}" for a in node.names}
            elif isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
    own = {name for name in found if name.startswith("symad")}
    assert {name for name in own if not name.startswith(ALLOWED)} == set()
    assert not {name for name in found if name.startswith(("flint", "networkx"))}


@pytest.mark.thorough
def test_random_steps_never_crash_the_checker():
    certificate = symad.check(FUNCTIONS["logistic"], seed=1)
    claims, (proof, *_) = claims_of(certificate.comparisons), certificate.proofs
    rng, refused = random.Random(3), 0
    for _ in range(200):
        steps = [list(step) for step in proof.steps] or [[1, "name", None]]
        step = rng.choice(steps)
        step[rng.randrange(3)] = rng.choice(
            [None, -1, 10**30, "sum", [], [[1, 2]], {"a": 1}, 0.5, [[1, [[], 0, []]]]]
        )
        try:
            replay(claims, replace(proof, steps=tuple(steps), digest=digest_of(proof.goals, steps)))
        except Refused:
            refused += 1
    assert refused > 150


def test_fused_ops_are_replayed_by_their_definitions_which_are_assumed():
    node = EXAMPLES[AffineScan]()[0]
    inputs = tuple(n for n in topological([node]) if type(n.op).__name__ == "Input")
    certificate = symad.check(Graph(inputs, (node,), TupleOf((None,)), "recurrence"), seed=1)
    assert certificate.status == "proved" and certificate.checked
    told = "the definition of AffineScan"
    assert all(told in entry.assumes for entry in certificate.entries)
    again = Certificate.from_json(certificate.to_json()).recheck()
    assert again.checked and all(told in entry.assumes for entry in again.entries)
