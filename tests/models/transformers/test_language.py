"""Tokens, embeddings, n-grams and the neural autoregressive model."""

from itertools import pairwise

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.errors import ShapeError, SymadError
from symad.models.layers.losses import cross_entropy
from symad.models.layers.parameters import count, trace_model
from symad.models.sequences import embedding, ngram, tokenization
from symad.models.sequences.neural_ar import NeuralAR, contexts
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def test_byte_pairs_of_abracadabra():
    """abracadabra → XracadXra (ab) → XYcadXY (ra) → ZcadZ (XY)."""
    tokenizer = tokenization.learn("abracadabra", 8)
    assert tokenizer.characters == ("a", "b", "c", "d", "r")
    assert tokenizer.texts[5:] == ["ab", "ra", "abra"]
    assert tokenizer.merges == ((0, 1), (4, 0), (5, 6))
    steps = [tokenization.Tokenizer(tokenizer.characters, tokenizer.merges[:k]) for k in range(4)]
    names = dict(enumerate("abcdrXYZ"))
    encoded = ["".join(names[t] for t in s.encode("abracadabra")) for s in steps]
    assert encoded == ["abracadabra", "XracadXra", "XYcadXY", "ZcadZ"]


def test_encoding_is_undone_by_decoding():
    text = "the theme of the thesis is the theory of these things\n" * 3
    tokenizer = tokenization.learn(text, 40)
    assert tokenizer.size == 40
    for other in (text, "these", "tttt", ""):
        assert tokenizer.decode(tokenizer.encode(other)) == other
    assert len(tokenizer.encode(text)) < len(text) / 2


def test_merging_goes_from_the_left():
    assert tokenization.merge([0, 0, 0, 1, 0, 0], (0, 0), 2) == [2, 0, 1, 2]
    assert tokenization.learn("ab", 10).merges == ()


def test_errors_of_tokenizers():
    tokenizer = tokenization.learn("abracadabra", 8)
    with pytest.raises(SymadError, match="'x' at 2 is not among the 5"):
        tokenizer.encode("abx")
    with pytest.raises(ShapeError, match="token 8 at 1 is not one of the 8 tokens"):
        tokenizer.decode([0, 8])
    with pytest.raises(ShapeError, match="text of 0 characters"):
        tokenization.learn("", 4)
    with pytest.raises(ShapeError, match="5 of them distinct"):
        tokenization.learn("abracadabra", 4)


def test_embedding_is_a_one_hot_product():
    table, tokens = rng.normal(size=(6, 3)), rng.integers(0, 6, (4, 2))
    expected = embedding.one_hot(tokens, 6) @ table
    np.testing.assert_array_equal(embedding.embed(table, tokens), expected)
    stacked = embedding.embed_context(table, tokens)
    np.testing.assert_array_equal(stacked, expected.reshape(4, 6))


def test_tied_embedding_adds_both_gradients():
    tokens = np.array([1, 4, 1])
    Y = rng.normal(size=(3, 6))

    def loss(p, tokens, Y):
        return np.sum(embedding.decode(np.tanh(embedding.embed(p["C"], tokens)), p["C"]) * Y)

    def reference(torch, p, tokens, Y):
        return ((torch.tanh(p["C"][tokens]) @ p["C"].T) * Y).sum()

    agrees_with_torch(loss, {"C": (6, 3)}, reference, tokens, Y)


def test_the_shared_embedding_shrinks_the_first_layer():
    v, n, e, h = sympy.symbols("v n e h", integer=True, positive=True)
    model = NeuralAR(v, n, e, h)
    assert model.shapes["W1"] == (h, n * e)
    total = v * e + h * n * e + h + v * h + v
    assert sympy.expand(count(model.shapes) - total) == 0
    # On one position the layer acts as W₁C, of rank at most d_emb.
    p = NeuralAR(20, 2, 3, 10).init(0)
    assert np.linalg.matrix_rank(p["W1"][:, :3] @ p["C"].T) == 3


def test_contexts_hold_the_newest_token_first():
    past, target = contexts([5, 6, 7, 8], 2)
    np.testing.assert_array_equal(past, [[6, 5], [7, 6]])
    np.testing.assert_array_equal(target, [7, 8])
    with pytest.raises(ShapeError, match=r"shape \(2,\)"):
        contexts([1, 2], 2)


def test_neural_ar_against_torch():
    model = NeuralAR(7, 3, 4, 5)
    past, target = rng.integers(0, 7, (6, 3)), rng.integers(0, 7, 6)

    def reference(torch, p, past, target):
        hidden = torch.tanh(p["C"][past].reshape(6, 12) @ p["W1"].T + p["b1"])
        return torch.nn.functional.cross_entropy(hidden @ p["W2"].T + p["b2"], target)

    agrees_with_torch(model.loss, model.shapes, reference, past, target)


def test_the_joint_is_the_product_of_the_truncated_factors():
    """Over three steps Π_t p(x_t | the last two) sums to 1, and its log is −3 times the cross-entropy."""
    from itertools import product

    model = NeuralAR(3, 2, 2, 4)
    p, start = {k: rng.normal(size=s) for k, s in model.shapes.items()}, [2, 0]
    total = 0.0
    for tail in product(range(3), repeat=3):
        past, target = contexts([*start, *tail], 2)
        joint = 1.0
        for context, token in zip(past, target, strict=True):
            scores = model.scores(p, context[None])[0]
            joint *= np.exp(scores[token]) / np.exp(scores).sum()
        np.testing.assert_allclose(np.exp(-3 * model.loss(p, past, target)), joint, rtol=1e-12)
        total += joint
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_neural_ar_refuses_tokens_outside_of_the_vocabulary():
    model = NeuralAR(7, 3, 4, 5)
    graph = trace_model(model.loss, model.shapes, (1, 3), (1,))
    with pytest.raises(ShapeError, match=r"index 7.0 at position \(0, 2\)"):
        graph(*model.init().values(), np.array([[1, 2, 7]]), np.array([0]))
    with pytest.raises(ShapeError, match=r"index 7.0"):
        graph(*model.init().values(), np.array([[1, 2, 6]]), np.array([7]))
    assert symad.gradient(graph, "C")(*model.init().values(), np.array([[1, 2, 6]]), np.array([0])).shape == (
        7,
        4,
    )


def test_ngrams_are_relative_frequencies():
    tokens = [0, 1, 0, 1, 0, 2]
    model = ngram.fit(tokens, 2, 3)
    np.testing.assert_allclose(model.probabilities([0]), [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(model.probabilities([2, 1]), [1, 0, 0])
    np.testing.assert_allclose(ngram.fit(tokens, 1, 3).probabilities([]), [3 / 6, 2 / 6, 1 / 6])
    # Five successors, of which three have probability 2/3, 2/3, 1/3 and two are certain.
    expected = (1 / (2 / 3 * 2 / 3 * 1 / 3)) ** (1 / 5)
    assert np.isclose(model.perplexity(tokens), expected)
    with pytest.raises(ShapeError, match="never occurred"):
        model.probabilities([2])


def test_smoothing_mixes_with_the_shorter_context():
    model = ngram.fit([0, 1, 0, 1, 0, 2], 2, 3, smoothing=1.0)
    unigram = (np.array([3, 2, 1]) + 1 / 3) / 7
    np.testing.assert_allclose(model.probabilities([]), unigram)
    np.testing.assert_allclose(model.probabilities([0]), (np.array([0, 2, 1]) + unigram) / 4)
    np.testing.assert_allclose(model.probabilities([2]), unigram)


def test_samples_are_transitions_that_occurred():
    text = "it was the best of times it was the worst of times"
    words = text.split()
    ids = {w: k for k, w in enumerate(sorted(set(words)))}
    tokens = [ids[w] for w in words]
    model = ngram.fit(tokens, 3, len(ids), smoothing=0.0)
    drawn = [*tokens[:2], *model.sample(tokens[:2], 8, seed=1)]
    triples = set(zip(tokens, tokens[1:], tokens[2:], strict=False))
    assert set(zip(drawn, drawn[1:], drawn[2:], strict=False)) <= triples


def test_ngrams_against_their_definition():
    """Every probability of all orders, counted by hand; one fit holds the lower orders too."""
    tokens = [int(t) for t in np.random.default_rng(3).integers(0, 3, 40)]

    def defined(context, token, alpha):
        below = 1 / 3 if not context else defined(context[1:], token, alpha)
        n = len(context)
        followers = [tokens[t + n] for t in range(40 - n) if tuple(tokens[t : t + n]) == context]
        return (followers.count(token) + alpha * below) / (len(followers) + alpha)

    model = ngram.fit(tokens, 4, 3, smoothing=0.5)
    for order in (1, 2, 4):
        found = model.shorter(order)
        for context in ([0, 2, 1], [1, 1, 1], tokens[-3:]):
            recent = tuple(context[len(context) - order + 1 :])
            expected = [defined(recent, token, 0.5) for token in range(3)]
            np.testing.assert_allclose(found.probabilities(context), expected)
            np.testing.assert_allclose([found.probability(context, k) for k in range(3)], expected)
        assert found.perplexity(tokens) == ngram.fit(tokens, order, 3, smoothing=0.5).perplexity(tokens)


def test_errors_of_ngrams():
    with pytest.raises(ShapeError, match="orders 1 to 2, not 3"):
        ngram.fit([0, 1, 0], 2, 2).shorter(3)
    with pytest.raises(ShapeError, match="at least 3 tokens, not 2"):
        ngram.fit([0, 1], 3, 2)
    with pytest.raises(ShapeError, match=r"not all in 0\.\.1"):
        ngram.fit([0, 2], 1, 2)


def test_lowered_code_names_the_token_that_does_not_exist():
    model = NeuralAR(6, 2, 2, 3)
    kernel = lower(trace_model(model.loss, model.shapes, (3, 2), (3,)))
    contexts_, targets = np.array([[1, 2], [0, 5], [3, 1]]), np.array([0, 4, 2])
    assert np.isfinite(kernel(*model.init(0).values(), contexts_, targets))
    with pytest.raises(IndexError, match=r"index 9 is not an integer in 0\.\.5"):
        kernel(*model.init(0).values(), np.where(contexts_ == 5, 9, contexts_), targets)
    with pytest.raises(IndexError, match=r"index 1.5 is not an integer in 0\.\.5"):
        kernel(*model.init(0).values(), contexts_ + 0.5, targets)


def test_an_index_array_may_be_a_table_of_numbers_as_well():
    """Positions 0, 1, 2 look up rows, and are the classes that targets are checked against."""

    def loss(P, targets):
        return cross_entropy(functions.lookup(P, functions.arange(3)), targets)

    graph = symad.trace(loss, [(3, 3), (3,)])
    P, targets = rng.normal(size=(3, 3)), np.array([2, 0, 1])
    for dtype, rtol in (("float64", 1e-13), ("float32", 1e-5)):
        value, slope, _ = lower(symad.value_and_gradient(graph), dtype=dtype)(P, targets)
        p = np.exp(P) / np.exp(P).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(value, -np.log(p[[0, 1, 2], targets]).mean(), rtol=rtol)
        np.testing.assert_allclose(slope, (p - np.eye(3)[targets]) / 3, rtol=10 * rtol, atol=rtol)


def test_merging_is_from_the_left_by_its_definition():
    tokens = [int(t) for t in rng.integers(0, 2, 60)]
    expected, k = [], 0
    while k < len(tokens):
        hit = tokens[k : k + 2] == [1, 1]
        expected.append(60_000 if hit else tokens[k])
        k += 2 if hit else 1
    assert tokenization.merge(tokens, (1, 1), 60_000) == expected
    assert tokenization.merge(expected, (60_000, 0), 2).count(2) == sum(
        found == (60_000, 0) for found in pairwise(expected)
    )
