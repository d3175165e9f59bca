"""Random numbers of a key: published bits, exact floats, zero derivatives, the same numbers everywhere."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.functions import fold_in, key, rand, randn, split
from symad.numbers.philox import _philox
from symad.numeric import lower
from symad.op_examples.fused import fold_in_examples, uniform_examples
from tests.known.philox import VECTORS, philox, words

K = key(0x0123456789ABCDEF)


def seed_words(seed):
    return [seed & 0xFFFFFFFF, seed >> 32]


def uniform_by_definition(seed, count):
    """The numbers as the documentation says, in Python's integers and exact fractions."""
    found = []
    for i in range(count):
        block = philox([i // 2, 0, 0, 0], seed_words(seed))
        high, low = block[i % 2 * 2 : i % 2 * 2 + 2]
        found.append((Fraction((high << 32 | low) >> 12) + Fraction(1, 2)) / 2**52)
    return found


# ---- the generator ------------------------------------------------------------------------------


@pytest.mark.parametrize(("counter", "seed", "result"), VECTORS)
def test_published_vectors(counter, seed, result):
    assert philox(words(counter), words(seed)) == words(result)
    arrays = [np.array([w], dtype=np.uint64) for w in words(counter) + words(seed)]
    assert [int(w[0]) for w in _philox(arrays[:4], arrays[4:])] == words(result)


def test_the_literal_definition_is_that_of_numpy_in_words_of_64_bits():
    seed, counter = [2**63 + 11, 12345678901234567890], [7, 2**64 - 1, 3, 4]
    bits = np.random.Philox(key=np.array(seed, np.uint64), counter=np.array(counter, np.uint64))
    theirs = bits.random_raw(4)  # NumPy counts before it draws
    assert philox([8, *counter[1:]], seed, bits=64) == [int(w) for w in theirs]


def test_vectorised_words_against_the_literal_definition():
    draw = np.random.default_rng(0).integers(0, 2**32, size=(6, 50), dtype=np.uint64)
    ours = np.array(_philox(draw[:4], draw[4:]))
    for column, found in zip(draw.T.tolist(), ours.T.tolist(), strict=True):
        assert found == philox(column[:4], column[4:])


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1, 0x0123456789ABCDEF])
def test_numbers_are_the_bits_of_the_stream(seed):
    exact = uniform_by_definition(seed, 11)
    assert [Fraction(float(v)) for v in rand(seed, 11)] == exact
    assert rand(seed, (11, 1)).tolist() == rand(key(seed), 11)[:, None].tolist()
    assert rand(seed) == float(exact[0])


def test_pieces_join():
    """Arrays longer than one piece of the cache: any element, also the last of an odd number."""
    long = rand(5, 20_001)
    for i in (0, 8191, 8192, 8193, 16_385, 20_000):
        block = philox([i // 2, 0, 0, 0], [5, 0])
        high, low = block[i % 2 * 2 : i % 2 * 2 + 2]
        assert Fraction(long[i]) == (Fraction((high << 32 | low) >> 12) + Fraction(1, 2)) / 2**52


def test_a_stream_of_a_key():
    block = philox([7, 0, 0, 1], seed_words(99))
    assert fold_in(99, 7).tolist() == [w >> s & 0xFFFF for w in block[:2] for s in (0, 16)]
    assert split(99, 9)[7].tolist() == fold_in(99, 7).tolist()
    assert fold_in(K, np.arange(3)).tolist() == split(K, 3).tolist()
    large = philox([5, 3, 0, 1], seed_words(99))
    assert fold_in(99, 3 * 2**32 + 5).tolist() == [w >> s & 0xFFFF for w in large[:2] for s in (0, 16)]


def test_normal_numbers_by_box_and_muller():
    u = [float(v) for v in uniform_by_definition(3, 8)]
    expected = [np.sqrt(-2 * np.log(a)) * np.cos(2 * np.pi * b) for a, b in zip(u[::2], u[1::2], strict=True)]
    assert np.allclose(randn(3, 4), expected, rtol=1e-15)


# ---- the laws, with fixed seeds and bounds from the standard error -------------------------------


def test_uniform_law():
    u = rand(11, 100_000)
    assert scipy.stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(u.mean() - 0.5) < 4 / np.sqrt(12 * u.size)
    assert 0 < u.min() < u.max() < 1


def test_normal_law():
    z = randn(12, 100_000)
    assert scipy.stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 4 * np.sqrt(2 / z.size)
    assert abs((z**4).mean() - 3) < 4 * np.sqrt(96 / z.size)


def test_streams_are_not_correlated():
    keys = split(13, 40)
    rows = np.array([randn(k, 2000) for k in keys] + [randn(13, 2000)])
    off = np.corrcoef(rows)[np.triu_indices(41, 1)]
    assert np.abs(off).max() < 5 / np.sqrt(2000)
    assert scipy.stats.kstest(off * np.sqrt(2000), "norm").pvalue > 1e-3


# ---- in graphs -----------------------------------------------------------------------------------


def noisy(w, k):
    return (np.exp(w * randn(k, w.shape[0])) * rand(fold_in(k, 1), w.shape[0])).sum()


n = sp.Symbol("n", integer=True, positive=True)
GRAPH = symad.trace(noisy, [(n,), (4,)])
W = np.linspace(-1, 1, 5)


def test_derivatives_take_the_noise_as_given():
    z, u = randn(K, 5), rand(fold_in(K, 1), 5)
    w_bar, k_bar = symad.gradient(GRAPH)(W, K)
    assert np.allclose(w_bar, z * u * np.exp(W * z), rtol=1e-14)
    assert k_bar.tolist() == [0] * 4
    assert np.allclose(symad.hessian(GRAPH, "w")(W, K), np.diag(z**2 * u * np.exp(W * z)), rtol=1e-14)
    assert symad.gradient(GRAPH, mode="forward")(W, K)[1].tolist() == [0] * 4


@pytest.mark.parametrize("node", [*uniform_examples(), *fold_in_examples()], ids=str)
def test_rules_are_checked(node):
    symad.testing.check_rule(node)


def test_check_draws_keys():
    certificate = symad.check(GRAPH.at({n: 2}))
    assert certificate.status == "measured"  # for the keys that were drawn


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_generated_numpy_code(dtype):
    kernel = lower(symad.trace(lambda k: rand(k, (3, 5)), [(4,)]), dtype=dtype)
    u, exact = kernel(K), rand(K, (3, 5))
    assert u.dtype == dtype
    cells = exact if dtype == "float64" else (np.floor(exact * 2.0**23) + 0.5) / 2.0**23
    assert u.astype(float).tolist() == cells.tolist()
    assert "symad" not in kernel.source.partition('by symad."""')[2].replace("symad.functions.key", "")
    found = lower(symad.gradient(GRAPH, "w"), dtype=dtype)(W, K)
    assert np.allclose(found, symad.gradient(GRAPH, "w")(W, K), rtol=1e-14 if dtype == "float64" else 2e-5)


def test_keys_go_through_scans_and_float32():
    """A random walk with one key a step."""

    def walk(c, k):
        steps = functions.scan(lambda s, kk: s * c + randn(kk, 2), np.zeros(2) * c, split(k, 6))
        return (steps[-1] ** 2).sum()

    graph = symad.trace(walk, [(), (4,)])
    z = np.array([randn(k, 2) for k in split(K, 6)])
    c = 0.9
    state = sum(c ** (5 - t) * z[t] for t in range(6))
    slope = sum((5 - t) * c ** (4 - t) * z[t] for t in range(5))
    assert graph(c, K) == pytest.approx((state**2).sum(), rel=1e-13)
    for dtype, rel in (("float64", 1e-12), ("float32", 1e-4)):
        value, c_bar, k_bar = lower(symad.value_and_gradient(graph), dtype=dtype)(c, K)
        assert (value, c_bar) == pytest.approx(((state**2).sum(), 2 * (state * slope).sum()), rel=rel)
        assert not np.any(k_bar)


@pytest.mark.parametrize("memory", ["all", "recompute", 2, "sqrt", "binomial"])
def test_a_backward_loop_makes_its_noise_again(memory):
    """A key that is part of the state: every policy of what to keep gives the same derivative."""

    def walk(c, k):
        def step(state, _):
            position, key = state
            return position * c + np.sin(position) * randn(key, 3), fold_in(key, 0)

        position, _ = functions.fold(step, (np.ones(3) * c, k), np.zeros(5), memory=memory)
        return (position**2).sum()

    graph = symad.trace(walk, [(), (4,)])
    kernel = lower(symad.gradient(graph, "c"))
    if memory == "recompute":  # four integers a step are kept, and no noise
        assert kernel.source.count(" = _uniform(") > 1
    position, slope, k = np.full(3, 0.9), np.ones(3), K
    for _ in range(5):
        z = randn(k, 3)
        slope = slope * 0.9 + position + np.cos(position) * slope * z
        position, k = position * 0.9 + np.sin(position) * z, fold_in(k, 0)
    assert kernel(0.9, K) == pytest.approx(2 * position @ slope, rel=1e-12)
    assert symad.gradient(graph, "c")(0.9, K) == pytest.approx(2 * position @ slope, rel=1e-12)


def test_models_take_keys_for_noise():
    """The loss of a variational autoencoder whose noise is made inside: that of the same noise given."""
    from symad.models.generative.vae import VAE
    from symad.models.layers.parameters import trace_model

    model = VAE(6, 5, 2)
    keyed = trace_model(
        lambda p, x, k: model.loss(p, x, randn(k, (x.shape[0], 2))), model.shapes, (3, 6), (4,)
    )
    x, p = rand(1, (3, 6)), model.init(0)
    names = list(p)
    inside = symad.value_and_gradient(keyed, names)(*p.values(), x, K)
    outside = symad.value_and_gradient(model.graph(3), names)(*p.values(), x, randn(K, (3, 2)))
    for a, b in zip(inside, outside, strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=1e-15)


def test_training_with_a_key_for_each_step():
    """The same run twice is the same to the last bit; in float32 it sees the same noise."""
    from symad.models.generative.vae import VAE
    from symad.models.layers.parameters import trace_model
    from symad.numeric.training.loop import train
    from symad.numeric.training.optimizers import Adam

    model = VAE(6, 8, 2)
    loss = trace_model(
        lambda p, x, k: model.loss(p, x, randn(k, (x.shape[0], 2))), model.shapes, (40, 6), (4,)
    )
    x = (rand(1, (40, 1)) < 0.5) * np.array([1.0, 1, 1, 0, 0, 0]) * 0.9 + 0.05

    def run(dtype):
        stream = ((x, fold_in(K, step)) for step in range(60))
        return train(loss, model.init(0), stream, Adam(1e-2), 60, dtype=dtype).losses

    first, again, single = run("float64"), run("float64"), run("float32")
    assert first == again
    assert np.mean(first[-5:]) < 0.8 * first[0]
    assert np.allclose(single, first, rtol=1e-3)


def test_batches_of_keys():
    keys = split(K, 3)
    graph = symad.trace(lambda k: randn(k, (2, 2)), [(4,)])
    assert symad.vmap(graph)(keys).tolist() == [randn(k, (2, 2)).tolist() for k in keys]
    assert rand(keys, 2).tolist() == [rand(k, 2).tolist() for k in keys]


def test_exact_and_dual_numbers():
    graph = symad.trace(lambda k, x: x * rand(k, 2), [(4,), ()])
    exact = uniform_by_definition(7, 2)
    integers = [int(v) for v in key(7)]
    assert graph([Fraction(v) for v in integers], Fraction(3)).tolist() == [3 * v for v in exact]
    assert graph([mpmath.mpf(v) for v in integers], mpmath.mpf(1))[0] == float(exact[0])
    x = sp.Symbol("x")
    assert graph([sp.Integer(v) for v in integers], x)[1] == sp.Rational(exact[1]) * x
    dual = graph([symad.Dual(float(v), 1.0) for v in integers], symad.Dual(2.0, 1.0))
    assert [d.tangent for d in dual] == [float(v) for v in exact]


def test_sympy_symbols_and_files(tmp_path):
    symbol = ArraySymbol("k", (4,))
    expression = sp.Symbol("x", real=True) * rand(symbol)
    assert symad.trace(expression)(K, 2.0) == 2 * rand(K)
    assert symad.trace(randn(symbol, 3))(K).tolist() == randn(K, 3).tolist()
    assert symad.trace(symad.to_sympy(GRAPH), [*GRAPH.inputs])(W, K) == GRAPH(W, K)
    symad.save(GRAPH, tmp_path / "g.json")
    assert symad.load(tmp_path / "g.json") is GRAPH


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True])
def test_bad_seeds(seed):
    with pytest.raises(ShapeError, match="seed of a key is an integer"):
        key(seed)


def test_bad_keys():
    graph = symad.trace(lambda k: rand(k, 2), [(4,)])
    for bad in (K + 0.5, K - 70_000, K + 70_000):
        with pytest.raises(EvaluationError, match="four integers"):
            graph(bad)
        with pytest.raises(ValueError, match="four integers"):
            lower(graph)(bad)
    with pytest.raises(EvaluationError, match="not of symbols"):
        graph(list(sp.symbols("a:d")))
    with pytest.raises(ShapeError, match=r"shape \(\.\.\., 4\), not \(3,\)"):
        rand(np.zeros(3), 2)
    with pytest.raises(ShapeError, match="one number for each key"):
        fold_in(split(K, 3), np.arange(2))
    with pytest.raises(EvaluationError, match="integers from 0 up"):
        fold_in(K, -1)
    with pytest.raises(TraceError, match="is a scalar"):
        rand(sp.Symbol("k"))
