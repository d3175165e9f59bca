"""Numbers in output are plain: no np.float64(...) in reprs, explanations, listings and printed text."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import least_squares, lower, minimize
from symad.numeric.sampling.expectation import Estimate
from symad.numeric.training.optimizers import SGD, Adam

x, y = sp.symbols("x y", real=True)
C, THREE = np.float64(0.1), np.int64(3)
GRAPHS = {
    "numbers": symad.trace(lambda a: C * a + a ** np.float64(2.5) + np.where(a > C, a, C) + THREE, [()]),
    "powers": symad.trace(lambda a: np.float64(2) ** a + np.float64(3) / a, [()]),
    "arrays": symad.trace(lambda a: (np.array([C, THREE, 1]) * np.maximum(a, C)).sum() * C, [(3,)]),
    "loops": symad.trace(lambda a: functions.scan(lambda h, u: C * h + u * THREE, a[0] * C, a), [(4,)]),
    "sizes": symad.trace(lambda a: np.tile(a, np.int64(2)).reshape(np.int64(2), THREE) * np.full((2, 3), C),
                         [(3,)]),
    "SymPy": symad.trace(x * C + np.float64(2) ** x, [x]),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_and_their_code(name: str) -> None:
    graph = GRAPHS[name]
    shown = [repr(graph), *(f"{node!r} {node.op!r}" for node in graph.nodes), str(graph.explain())]
    shown += [graph.explain().to_markdown(), graph.to_latex(), repr(symad.to_sympy(graph))]
    plain = lower(graph, style="plain")
    shown += [plain.source, plain.to_markdown(), plain.to_latex(), lower(graph).source]
    for text in shown:
        assert "np.float64(" not in text and "np.int64(" not in text, text
    point = np.full(graph.input_nodes[0].shape, 1.5)[()]
    np.testing.assert_allclose(plain(point), graph(point))


def test_powers_of_numbers_are_those_of_ieee() -> None:
    """A number's power by a value: never OverflowError or ZeroDivisionError."""
    for style in ("plain", "fast"):
        kernel = lower(symad.trace([2.0**x, 0**x, 2**x], [x]), style=style)
        assert kernel(2000.0) == (np.inf, 0.0, np.inf)
        assert kernel(-1.0) == (0.5, np.inf, 0.5)


def test_results() -> None:
    found = minimize((x - 1) ** 2 + y**2, {"x": np.float64(0), "y": np.float64(1)})
    fit = least_squares(symad.trace([x - 1, y - 2]), [np.float64(1), np.float64(1)])
    assert repr(found).startswith("Minimum(x={'x': ") and repr(fit).startswith("Fit(x=(")
    assert repr(Adam(C)).startswith("Adam(rate=0.1, beta1=0.9")
    assert repr(Estimate(np.float64(1.5), np.float64(0.5), 7)) == "Estimate(mean=1.5, error=0.5, count=7)"
    assert not any("np.float64(" in repr(made) for made in (found, fit, SGD(C)))


def test_numbers_of_numpy_are_counts_and_axes() -> None:
    """Counts that are NumPy's integers made shapes that no code was printed for."""
    a = np.arange(12.0).reshape(3, 4)
    for f in (
        lambda a: np.tile(a, (np.int64(2), np.int64(1))),
        lambda a: np.tensordot(a, a.T, axes=np.int64(1)),
        lambda a: np.tensordot(a, a, axes=(np.int64(0), np.int64(0))),
        lambda a: np.vander(a[0], np.int64(3)),
    ):
        np.testing.assert_allclose(lower(symad.trace(f, [(3, 4)]))(a), f(a))
