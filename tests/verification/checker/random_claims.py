"""Small random functions with their derivatives, wrong derivatives of these, and proofs forged for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import numpy as np
import sympy as sp

from symad.core.claims import Derivative, Derived, Proof
from symad.core.graph import Graph, rebuild, topological
from symad.numbers.values import unchecked
from symad.ops.arrays.softmax import softmax
from symad.ops.basic.arithmetic import Add, add, mul
from symad.ops.basic.contraction import einsum, inner, sum_all
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Input, constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import Condition, compare, select
from symad.transforms.cotangents import pull
from symad.transforms.tangents import dense, push
from symad.verification.checker.proofs import DAMAGE, ForAllSizes
from symad.verification.checker.terms import Refused
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.node_proofs import BriefTerms
from symad.verification.proof.node_sweeps import guessed, numbered

n = sp.Symbol("n", integer=True, positive=True)
SHAPES = {"s": (), "v": (n,), "m": (n, n)}
LETTERS = {
    "pushforward": ["v"],
    "slope": ["v", "V"],
    "curvature": ["VW", "vw", "vW", "Vw", "WV", "wv", "Wv", "wV"],
}


def variable(name, shape):
    """An input of this name."""
    sizes = (*shape, 1, 1)[:2]
    return input_node(sp.MatrixSymbol(name, *sizes) if shape else sp.Symbol(name, real=True), shape)


def function(rng, steps):
    """Inputs, and nodes that are computed by one another."""
    pool = [variable("x", (n,)), variable("z", (n,)), variable("A", (n, n)), variable("s", ())]

    def pick(kind):
        near = [p for p in pool[-6:] if p.shape == SHAPES[kind]]
        return rng.choice(near or [p for p in pool if p.shape == SHAPES[kind]])

    for _ in range(steps):
        kind = rng.choice("vvvms")
        a, b = pick(kind), pick(kind)
        half = mul(constant(sp.Rational(1, 2)), a)
        makers = [
            lambda a=a, b=b: add(a, b), lambda a=a, b=b: add(a, b), lambda a=a, b=b: mul(a, b),
            lambda a=a, b=b: mul(a, b), lambda half=half: apply(rng.choice([sp.sin, sp.exp, sp.tanh]), half),
            lambda: einsum("ij,j->i", pick("m"), pick("v")),
            lambda: einsum("ij,i->j", pick("m"), pick("v")), lambda: einsum("i,j->ij", pick("v"), pick("v")),
            lambda: einsum("ij,jk->ik", pick("m"), pick("m")),
            lambda: einsum("ij->ji", pick("m")), lambda: inner(pick("v"), pick("v")),
            lambda: sum_all(pick("v")), lambda: softmax(pick("v")), lambda: softmax(pick("m"), (1,)),
            lambda a=a, b=b: select(compare("<", a, b), a, mul(a, b)),
            lambda a=a: mul(a, broadcast_to(pick("s"), a.shape) if a.shape else pick("s")),
        ]  # fmt: skip
        pool.append(rng.choice(makers)())
    return pool


def right_claim(rng):
    """A claim made by symad's rules; None if the function has no vector to differentiate."""
    pool = function(rng, rng.randint(2, 6))
    kind = rng.choice(["gradient", "pushforward", "pullback", "slope", "curvature", "jacobian"])
    one = kind == "jacobian"
    wrt = (pool[rng.choice([0, 2, 3])],) if one else tuple(rng.sample(pool[:4], rng.choice([1, 1, 2])))
    v, u = ([variable(f"{c}{k}", a.shape) for k, a in enumerate(wrt)] for c in "vu")
    if kind in ("gradient", "curvature", "jacobian"):
        parts = [sum_all(mul(p, apply(sp.sin, p))) if p.shape else mul(p, p) for p in pool[4:][-3:]]
        f, bar, weights = add(*parts), constant(1), ()
    else:
        vectors = [p for p in pool[4:] if p.shape == (n,)]
        if not vectors:
            return None
        f = vectors[-1]
        bar = variable("w", f.shape)
        weights = (bar,) if kind != "pushforward" else ()

    def along(f, d):
        return dense(push([f], dict(zip(wrt, d, strict=True)))[0], f)

    def pulled(f, bar):
        return tuple(dense(t, a) for t, a in zip(pull([f], [bar], wrt), wrt, strict=True))

    def product(a, b):
        return add(*map(inner, a, b))

    backward = rng.random() < 0.5
    if kind in ("gradient", "jacobian", "pullback"):
        outputs = pulled(f, bar)
    elif kind == "pushforward":
        outputs = (along(f, v),)
    elif kind == "slope":
        outputs = (product(pulled(f, bar), v) if backward else inner(bar, along(f, v)),)
    else:
        h = product(pulled(f, bar), v) if backward else along(f, v)
        outputs = (product(pulled(h, bar), u) if rng.random() < 0.5 else along(h, u),)
    directions = tuple(v) if kind in ("pushforward", "slope", "curvature") else ()
    weights = tuple(u) if kind == "curvature" else weights
    claim = Derived(Derivative(kind, (f,), wrt, directions, weights), outputs)
    return claim if claim.is_whole else None


def wrong_claim(rng, claim):
    """The claim with a node m of its outputs replaced, m, and by what; None if there is no such node."""
    inside = set(topological(claim.derivative.function))
    own = [m for m in topological(claim.outputs) if not isinstance(m.op, (Input, Condition))]
    own = [m for m in own if m not in inside]
    if not own:
        return None
    m, r = rng.choice(own), rng.randrange(6)
    others = [q for q in claim.nodes if q.shape == m.shape and not isinstance(q.op, Condition)]
    others = [q for q in others if m not in topological([q])]
    new = mul(constant(-1), m)
    if r == 0:
        new = mul(constant(2), m)
    elif r == 1 and isinstance(m.op, Add) and m.args[0].shape == m.shape:
        new = m.args[0]
    elif r < 5 and others:
        q = rng.choice(others)
        new = (q, add(m, q), mul(m, q))[r - 2]
    outputs = tuple(rebuild(claim.outputs, {m: new}))
    return (Derived(claim.derivative, outputs), m, new) if new.shape == m.shape else None


def dishonest_sweeps(rng, right, wrong, m, new):
    """Sweeps near to those of a right claim, with pairs missing, and pairs of any nodes of one shape."""
    sweeps, _ = guessed(right, rng.choice(LETTERS.get(right.derivative.kind, ["X"])))
    old = topological(right.outputs)
    image, there, made = dict(zip(old, rebuild(old, {m: new}), strict=True)), set(wrong.nodes), []
    for letter, pairs in [*sweeps, ("", {})]:
        moved = {image.get(a, a): image.get(b, b) for a, b in pairs.items() if rng.random() < 0.85}
        moved = {a: b for a, b in moved.items() if a in there and b in there}
        for _ in range(rng.choice([0, 0, 1, 2])):
            a, b = rng.choice(wrong.nodes), rng.choice(wrong.nodes)
            moved |= {a: b} if a.shape == b.shape else {}
        made.append((letter, moved))
    return made


def answered(left, right, writing, opened):
    """The answers by which two sides are equal; None if none are found."""
    for define in (False, True):
        finder = IsomorphismFinder(define, {a: partial(writing.opened, a) for a in opened})
        try:
            if finder.equal(left, right):
                return [list(step) for step in finder.found]
        except (Refused, *DAMAGE):
            continue
    return None


def forged(claim: Derived, outputs: int | list[int], sweeps, choices) -> tuple[Proof, int]:
    """A proof of one or more outputs by any sweeps, and how many identities are left without an answer.

    ``choices`` says for each identity, by its number and its node, which sets of nodes to open.
    """
    place, parts, left = {node: k for k, node in enumerate(claim.nodes)}, [], 0
    nodes = [b for letter, pairs in sweeps if letter for b in pairs.values()]
    outputs = [outputs] if isinstance(outputs, int) else outputs
    writing = ForAllSizes(BriefTerms(100_000))
    try:
        sides = writing.lemmas(claim, outputs, sweeps).values()
    except (Refused, *DAMAGE):
        sides, left, parts = [], len(nodes) + 1, [[[], []]] * (len(nodes) + 1)
    for k, pair in enumerate(sides):
        found = None
        for opened in choices(k, nodes[k] if k < len(nodes) else None):
            if (found := answered(*pair, writing, opened)) is not None:
                parts.append([[place[a] for a in opened], found])
                break
        if found is None:
            left += 1
            parts.append([[], []])
    goals = tuple((0, o, 0) for o in outputs)
    return Proof((0,), goals, (numbered(claim, sweeps), *parts), 0, "networks"), left


def any_opened(rng, sweeps):
    """Some sets of nodes to open: none, the derivative itself, all nodes, and a few by chance."""
    cut = list(dict.fromkeys(a for _, pairs in sweeps for pair in pairs.items() for a in pair))

    def choices(_, node):
        own = [node] * (node is not None)
        chance = [rng.sample(cut, rng.randint(1, min(4, len(cut)))) for _ in range(4 if cut else 0)]
        return [[], own, cut, *(list(dict.fromkeys([*some, *own])) for some in chance)]

    return choices


# ---- finite differences --------------------------------------------------------------------------------


def gaps(claim: Derived, size: int, seed: int) -> Sequence[float]:
    """How far each output is from finite differences of the function, relative to their sizes."""
    d, rng = claim.derivative, np.random.default_rng(seed)
    inputs = [a for a in claim.nodes if isinstance(a.op, Input)]
    graph = Graph((), (*d.function, *claim.outputs, *inputs)).at({n: size}).output_nodes
    f, made, places = graph[0], graph[1 : len(claim.outputs) + 1], graph[len(claim.outputs) + 1 :]
    at = dict(zip(inputs, places, strict=True))
    point = {a: rng.normal(size=a.shape) * 0.7 for a in places}

    def values(nodes, point):
        given = {a: b if a.shape else float(b) for a, b in point.items()}
        with np.errstate(all="ignore"):
            return [np.asarray(v, float) for v in unchecked(nodes, given)]

    def value(point):
        (found,) = values([f], point)
        return (found * point[at[d.w[0]]]).sum() if d.w and d.kind != "curvature" else found

    def slope(g, point, by, h):
        def moved(k):
            return g(point | {at[a]: point[at[a]] + k * h * b for a, b in zip(d.wrt, by, strict=True)})

        return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)

    v, u = ([point[at[a]] for a in given] for given in (d.v, d.w))
    wanted = []
    if d.kind in ("pushforward", "slope"):
        wanted = [slope(value, point, v, 1e-4)]
    elif d.kind == "curvature":
        wanted = [slope(lambda p: slope(value, p, v, 1e-3), point, u, 1e-3)]
    for a in d.wrt if not wanted else ():
        units = np.eye(max(1, point[at[a]].size)).reshape(-1, *point[at[a]].shape)
        zeros = [np.zeros(point[at[b]].shape) for b in d.wrt]
        by = [[unit if b is a else zero for b, zero in zip(d.wrt, zeros, strict=True)] for unit in units]
        rows = np.stack([slope(value, point, one, 1e-4) for one in by], -1)
        wanted.append(rows.reshape((*rows.shape[:-1], *point[at[a]].shape)))
    pairs = zip(wanted, values(made, point), strict=True)
    return [float(np.abs(a - b).max() / (1e-6 + np.abs(a).max() + np.abs(b).max())) for a, b in pairs]


def sample(seed):
    """A random claim and its source of chance."""
    rng = random.Random(seed)
    return rng, right_claim(rng)
