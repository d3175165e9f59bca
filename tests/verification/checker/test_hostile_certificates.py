"""Damaged or forged certificates: a named error or a verdict in a short time; proved claims are true."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SymadError
from symad.ops.basic.arithmetic import add
from tests.verification.checker.claims_at_points import holds

x, y = sp.symbols("x y", real=True)
TEXTS = {
    "a gradient": symad.verify(
        sp.sin(x * y) * sp.exp(x),
        [x, y],
        gradient=[
            y * sp.cos(x * y) * sp.exp(x) + sp.sin(x * y) * sp.exp(x),
            x * sp.cos(x * y) * sp.exp(x),
        ],
        seed=1,
    ).to_json(),
    "an equality": symad.equal(sp.Max(x, y) + sp.Min(x, y), x + y, seed=1).to_json(),
    "a refutation": symad.verify(x**2, x, gradient=3 * x, seed=1).to_json(),
}

DEEP: list = []
for _ in range(400):
    DEEP = [DEEP]

VALUES = (
    None, True, -1, 0, 1, 2**63, 10**400, 10**9, 1e308, float("nan"), float("-inf"), "", "x" * 10**5, "1/0",
    "1e999999999", "10**10**9", '__import__("os")', [], [[]], {}, {"a": 1}, DEEP, [0] * 10**4,
    ["^", 10, ["^", 10, ["^", 10, 10]]], ["sympy.factorial", 3000000],
)  # fmt: skip
"""What is put in place of something, anywhere."""


def places(value, way=()):
    """All positions in nested lists and dicts, but for the whole."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        yield from places(item, (*way, key))


def put(data, way, value):
    for key in way[:-1]:
        data = data[key]
    data[way[-1]] = value


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_certificate_is_refused_or_decided_soon(name):
    rng = random.Random(name)
    every = list(places(json.loads(TEXTS[name])))
    refused = 0
    for way in rng.sample(every, 60):
        data = json.loads(TEXTS[name])
        put(data, way, rng.choice(VALUES))
        try:
            again = symad.Certificate.from_json(json.dumps(data)).recheck()
        except SymadError:
            refused += 1
        else:
            assert again.status in ("refuted", "undecided", "measured", "tested", "proved")
    assert refused > 20


def nearby(value, rng):
    """A small change that leaves the kind as it is."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value + rng.choice((-2, -1, 1, 2))
    heads = ("sympy.cos", "sympy.sin", "sympy.exp", "sympy.Max", "sympy.Min", "sympy.tanh")
    return rng.choice(heads) if value in heads else value


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a gradient", "an equality"])
def test_what_is_still_proved_of_changed_graphs_is_true(name):
    """Claims are changed, and the proof is left: what is accepted is the same or another true claim."""
    rng = random.Random(name)
    accepted = refuted = 0
    data = json.loads(TEXTS[name])
    leaves = [w for w in places(data["comparisons"]) if w and not isinstance(_at(data, w), (list, dict))]
    for way in rng.sample(leaves, min(50, len(leaves))):
        data = json.loads(TEXTS[name])
        changed = nearby(_at(data, way), rng)
        if changed == _at(data, way):
            continue
        put(data["comparisons"], way, changed)
        try:
            again = symad.Certificate.from_json(json.dumps(data)).recheck(seed=1)
        except SymadError:
            continue
        refuted += again.status == "refuted"
        if again.status in ("proved", "tested"):
            accepted += 1
            for _ in range(3):
                point = {"x": rng.uniform(0.3, 1.2), "y": rng.uniform(0.3, 1.2)}
                assert all(holds(c, point) for c in again.comparisons), (way, changed)
    assert accepted and refuted


def _at(data, way):
    value = data["comparisons"]
    for key in way:
        value = value[key]
    return value


def test_a_derivative_of_another_function_is_refuted():
    """Both sides are left as they are, and equal; the function that they are said to derive is another."""
    data = json.loads(TEXTS["a gradient"])
    data["comparisons"][0]["graph"]["outputs"][4] = 6
    again = symad.Certificate.from_json(json.dumps(data)).recheck(seed=1)
    assert again.status == "refuted"


def test_entries_that_belong_to_no_claim_are_not_believed():
    data = json.loads(TEXTS["a gradient"])
    more = {"name": "∂f/∂z", "status": "proved", "claim": "proved elsewhere", "bound": 0.0, "checked": True}
    data["entries"].append(more)
    again = symad.Certificate.from_json(json.dumps(data)).recheck(seed=1)
    assert again.status == "undecided" and not again.checked
    data["entries"][-1] = {**more, "status": "refuted"}
    assert symad.Certificate.from_json(json.dumps(data)).recheck(seed=1).status == "refuted"


def test_claims_about_nothing_are_no_claims():
    data = json.loads(TEXTS["a gradient"])
    (comparison,) = data["comparisons"]
    comparison["graph"] |= {"outputs": [], "structure": ["tuple", []]}
    comparison["names"], data["proofs"] = [], []
    del comparison["derivative"]
    with pytest.raises(SymadError, match="0 outputs"):
        symad.Certificate.from_json(json.dumps(data))
    with pytest.raises(SymadError, match="no outputs"):
        symad.equal((), ())
    with pytest.raises(SymadError, match="no outputs"):
        symad.check(symad.trace(lambda a: (), [(3,)]))


def test_what_is_trusted_is_found_again():
    data = json.loads(TEXTS["a gradient"])
    data["comparisons"][0]["assumes"] = []
    again = symad.Certificate.from_json(json.dumps(data)).recheck(seed=1)
    assert any("the derivative of exp" in a for a in again.assumes)


def test_rules_of_users_are_compared_again():
    wrong = symad.register_function(
        "wrong_fifth", lambda v: v**5, [lambda v: 4 * v**4], mpmath=lambda v: v**5
    )
    data = json.loads(symad.verify(wrong(x), x, gradient=4 * x**4, seed=1).to_json())
    data["entries"] = [entry for entry in data["entries"] if entry["status"] == "proved"]
    read = symad.Certificate.from_json(json.dumps(data))
    assert read.status == "proved" and read.recheck(seed=1).status == "refuted"


def test_the_command_says_what_is_claimed(tmp_path, capsys):
    """Titles and names are words of the file: two equal sides may be called a gradient."""
    from symad.cli import main

    data = json.loads(TEXTS["a gradient"])
    (comparison,) = data["comparisons"]
    (tmp_path / "honest.json").write_text(json.dumps(data))
    outputs = comparison["graph"]["outputs"][:2] * 2
    comparison["graph"] |= {"outputs": outputs, "structure": ["tuple", [None] * 4]}
    del comparison["derivative"]
    (tmp_path / "forged.json").write_text(json.dumps(data))
    assert main(["recheck", str(tmp_path / "honest.json")]) == 0
    assert "the gradient by x, y of exp(x)*sin(x*y)" in capsys.readouterr().out
    main(["recheck", str(tmp_path / "forged.json")])
    shown = capsys.readouterr().out
    assert "equal values, of no derivative" in shown and "SymPy's" not in shown


def test_a_claim_of_many_elements_is_counted_and_not_listed():
    data = json.loads(symad.check(sp.sin(x * y) * sp.exp(x), seed=1).to_json())
    for comparison in data["comparisons"]:
        for node in comparison["graph"]["nodes"]:
            if node[0] == "Reshape":
                node[1][0][-1] = 10**9
    with pytest.raises(SymadError):
        symad.Certificate.from_json(json.dumps(data)).recheck()


def test_the_command_says_what_is_wrong_with_a_file(tmp_path, capsys):
    from symad.cli import main

    for number, text in enumerate(
        ("[" * 10**5, "NaN", '{"status": "proved"}', "", "{}", '{"a": 1, "a": 2}', "1" * 5000, "\x00")
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        assert main(["recheck", str(path)]) not in (0, 1)
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err and (shown.out or shown.err)


def by_hand(sizes):
    """The cotangents of tanh(W a), written by hand."""
    inner, outer = sizes
    f = symad.trace(lambda a, W: np.tanh(W @ a), [(inner,), (outer, inner)])

    def backward(a, W, y_bar):
        z_bar = y_bar * (1 - np.tanh(W @ a) ** 2)
        return W.T @ z_bar, np.outer(z_bar, a)

    return symad.verify(f, vjp=symad.trace(backward, [(inner,), (outer, inner), (outer,)]), seed=1)


def of_a_gamma_function():
    """The cotangent of Γ(p + 1) by Γ(p) and ψ(p), for whose recurrences the checker has no rule."""
    slope = sp.gamma(p) * (1 + p * sp.digamma(p))
    return symad.verify(sp.gamma(p + 1), p, vjp=slope * sp.Symbol("y_bar", real=True), seed=1)


N, K = sp.symbols("N K", integer=True, positive=True)
p = sp.Symbol("p", positive=True)
PRODUCTS = {
    "by the checker": lambda: by_hand((3, 2)),
    "of all sizes": lambda: by_hand((N, K)),
    "without a rule": of_a_gamma_function,
    "along a direction": lambda: symad.verify(
        x**2 * y, [x, y], jvp=2 * x * y * sp.Symbol("x_dot") + x**2 * sp.Symbol("y_dot"), seed=1
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("with_proofs", [True, False])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_the_derivative_of_another_function_are_refuted(name, with_proofs):
    """Both sides agree, and so do the proofs that they do; the function is three times what it was."""
    certificate = PRODUCTS[name]()
    known = "tested" if name == "without a rule" else "proved"
    assert certificate.status == known
    again = symad.Certificate.from_json(certificate.to_json()).recheck(seed=1)
    assert again.status == known and len(again.entries) == len(certificate.entries)
    (comparison,) = certificate.comparisons
    claim = comparison.derivative
    tripled = tuple(add(node, node, node) for node in claim.function)
    forged = replace(
        certificate, comparisons=(replace(comparison, derivative=replace(claim, function=tripled)),)
    )
    if not with_proofs:
        forged = replace(forged, proofs=())
    assert symad.Certificate.from_json(forged.to_json()).recheck(seed=1).status == "refuted"


def test_a_key_occurs_once():
    title = '"title": "gradient of f",'
    twice = TEXTS["a gradient"].replace(title, f'"title": "gradient of g", {title}', 1)
    with pytest.raises(SymadError, match="'title' occurs twice"):
        symad.Certificate.from_json(twice)


def test_what_a_refused_proof_claimed_is_proved_anew():
    """Other outputs are decided by symad's derivative; those proved again are left as they are."""
    data = json.loads(PRODUCTS["of all sizes"]().to_json())
    assert [proof["way"] for proof in data["proofs"]] == ["networks"] * len(data["proofs"])
    data["proofs"][0]["steps"].pop()
    again = symad.Certificate.from_json(json.dumps(data)).recheck(seed=1)
    assert again.status == "proved" and again.notes


def test_a_file_without_entries_says_nothing():
    data = json.loads(TEXTS["a gradient"]) | {"entries": [], "comparisons": [], "proofs": []}
    read = symad.Certificate.from_json(json.dumps(data))
    assert read.status == "undecided" and not read
    with pytest.raises(SymadError, match="nothing to check again"):
        read.recheck()


def test_a_number_is_no_condition():
    """The identity test took the number 0 of a condition for true: sign x was `tested` to be 1."""
    data = json.loads(symad.verify(sp.Abs(x), x, gradient=sp.Integer(1), where=x > 0, seed=1).to_json())
    nodes = data["comparisons"][0]["graph"]["nodes"]
    indicators = [node for node in nodes if node[0] == "Select" and nodes[node[2][0]][0] == "Compare"]
    for node in indicators:
        number = next(k for k, other in enumerate(nodes) if other[:2] == ["Constant", [0, "int"]])
        node[2] = [number, *node[2][:2]]
    assert indicators
    with pytest.raises(SymadError, match=r"a condition of Select.* is a number, not a truth value"):
        symad.Certificate.from_json(json.dumps(data))
