"""Array graphs with compiled kernels, against the graphs evaluated by themselves and PyTorch."""

import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiled_arrays.strided_arrays import View, contiguous, merged
from symad.numeric.compiler import c_compiler
from symad.numeric.compiler.c_compiler import compiler

needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
RNG = np.random.default_rng(3)


def close(graph, values, dtype="float64", rtol=1e-12):
    """The compiled code gives what the graph, evaluated op by op in NumPy, gives; its kernel."""
    kernel = lower(graph, backend="c", dtype=dtype)
    found, expected = kernel(*values), graph(*values)
    found, expected = (side if isinstance(side, tuple) else (side,) for side in (found, expected))
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * max(1, np.max(np.abs(other))))
    return kernel


def layer_norm(x, g, b):
    mean = np.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    return g * centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5) + b


def chains(x, row, column, number):
    y = np.tanh(x * row) + np.exp(-(column**2)) * number
    return np.sum(np.log(1 + y**2) * np.maximum(x, row))


def conditions(x, row, column, number):
    return np.sum(np.where(x > row, np.sin(x) * number, x**3 - column) * np.abs(x))


def regions(x, row, column, number):
    return np.sum(np.sin(layer_norm(x, row, row * number)) * column)


def softmaxes(x, row, column, number):
    p = functions.softmax(x * number, axis=-1)
    return np.sum(p * row) + np.sum(functions.log_softmax(x + column, axis=-1) * x)


def transposed(x, row, column, number):
    return np.sum(np.tanh(x.T * number + row[:, None]) ** 2 * x.T)


CASES = {f.__name__: f for f in (chains, conditions, regions, softmaxes, transposed)}
FIXED = [(5, 9), (9,), (5, 1), ()]


PRECISIONS = [(name, "float64", 1e-12) for name in CASES]
PRECISIONS += [(name, "float32", 2e-5) for name in ("chains", "regions")]


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(("name", "dtype", "rtol"), PRECISIONS)
def test_values_and_gradients(name, dtype, rtol):
    graph = symad.value_and_gradient(symad.trace(CASES[name], inputs=FIXED))
    values = [RNG.normal(size=s) for s in FIXED]
    kernel = close(graph, values, dtype, rtol)
    assert "kernel_1" in kernel.source and "void kernel_1(" in kernel.c_source
    strided = [np.asarray(v, order="F") for v in values]
    for one, other in zip(kernel(*strided), kernel(*values), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol)


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("name", ["chains", "regions"])
def test_any_size_in_one_kernel_also_without_elements(name):
    n, m = sp.symbols("n m", integer=True, positive=True)
    graph = symad.value_and_gradient(symad.trace(CASES[name], inputs=[(n, m), (m,), (n, 1), ()]))
    kernel = lower(graph, backend="c")
    for rows, columns in ((3, 4), (1, 1), (2, 1500), (700, 130)):
        values = [RNG.normal(size=s) for s in ((rows, columns), (columns,), (rows, 1), ())]
        expected = lower(graph)(*values)
        for one, other in zip(kernel(*values), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * max(1, np.max(np.abs(other))))
    made = kernel(np.zeros((0, 4)), np.ones(4), np.zeros((0, 1)), 1.0)
    assert made[0] == 0 and made[1].shape == (0, 4)


@needs_compiler
def test_infinities_and_nan_pass_through():
    graph = symad.trace(lambda x: functions.softmax(np.tanh(x) * x, axis=-1), inputs=[(3, 4)])
    x = RNG.normal(size=(3, 4))
    x[0, 1], x[1, 2] = np.nan, -np.inf
    with np.errstate(all="ignore"):
        expected = graph(x)
    found = lower(graph, backend="c")(x)  # no warning: pytest would make it an error
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isnan(found[0]).all() and not np.isnan(found[2]).any()


# ---- recurrences ---------------------------------------------------------------------------------


def lstm(h0, W, U, b, xs):
    """Gates along the last axis; the state is (h, c)."""
    width = h0.shape[-1]

    def step(state, x):
        z = x @ U + state[0] @ W + b
        i, f, g, o = (z[:, k * width : (k + 1) * width] for k in range(4))
        c = functions.sigmoid(f) * state[1] + functions.sigmoid(i) * np.tanh(g)
        return np.stack([functions.sigmoid(o) * np.tanh(c), c])

    states = functions.scan(step, np.stack([h0, h0]), xs)
    return np.sum(states[-1][0] ** 2) + np.sum(states[:, 1])


def gru(h0, W, U, b, xs):
    width = h0.shape[-1]

    def step(h, x):
        z = x @ U[:, : 2 * width] + h @ W[:, : 2 * width] + b[: 2 * width]
        r, u = functions.sigmoid(z[:, :width]), functions.sigmoid(z[:, width:])
        new = np.tanh(x @ U[:, 2 * width : 3 * width] + (r * h) @ W[:, 2 * width : 3 * width])
        return (1 - u) * h + u * new

    return np.sum(functions.scan(step, h0, xs) ** 2)


def elman(h0, W, U, b, xs):
    width = h0.shape[-1]
    W, U, b = W[:, :width], U[:, :width], b[:width]
    return np.sum(functions.scan(lambda h, x: np.tanh(x @ U + h @ W + b), h0, xs)[-1])


SHAPES = [(2, 3), (3, 12), (4, 12), (12,), (6, 2, 4)]


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(
    ("cell", "dtype", "rtol"), [(lstm, "float64", 1e-12), (gru, "float64", 1e-12), (elman, "float32", 1e-5)]
)
def test_recurrences_run_in_compiled_loops(cell, dtype, rtol):
    graph = symad.value_and_gradient(symad.trace(cell, inputs=SHAPES))
    kernel = close(graph, [RNG.normal(size=s) for s in SHAPES], dtype, rtol)
    assert kernel.source.count("run_loop(") == 2  # forwards and back
    assert "for " not in kernel.source.rpartition("\ndef ")[2]


@pytest.mark.thorough
@needs_compiler
def test_the_cells_gradient_equals_pytorchs():
    torch = pytest.importorskip("torch")
    module = torch.nn.LSTM(4, 3, dtype=torch.float64)
    xs = torch.randn(6, 2, 4, dtype=torch.float64)
    h, c = torch.zeros(1, 2, 3, dtype=torch.float64), torch.zeros(1, 2, 3, dtype=torch.float64)
    _, (last, _) = module(xs, (h, c))
    last.pow(2).sum().backward()

    def loss(W, U, b, xs):
        def step(state, x):
            z = x @ U + state[0] @ W + b
            i, f, g, o = (z[:, k * 3 : k * 3 + 3] for k in range(4))
            c = functions.sigmoid(f) * state[1] + functions.sigmoid(i) * np.tanh(g)
            return np.stack([functions.sigmoid(o) * np.tanh(c), c])

        return np.sum(functions.scan(step, np.zeros((2, 2, 3)), xs)[-1][0] ** 2)

    graph = symad.gradient(symad.trace(loss, inputs=[(3, 12), (4, 12), (12,), (6, 2, 4)]), wrt=[0, 1, 2])
    W, U = (w.detach().numpy().T for w in (module.weight_hh_l0, module.weight_ih_l0))
    b = (module.bias_hh_l0 + module.bias_ih_l0).detach().numpy()
    ours = lower(graph, backend="c")(W, U, b, xs.numpy())
    theirs = (module.weight_hh_l0.grad.T, module.weight_ih_l0.grad.T, module.bias_hh_l0.grad)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.thorough
@needs_compiler
def test_an_hessian_vector_product_runs_in_compiled_loops():
    shapes = [(2, 3), (3, 12), (4, 12), (12,), (4, 2, 4)]
    graph = symad.hvp(symad.trace(elman, inputs=shapes), wrt=[1])
    values = [RNG.normal(size=node.shape) for node in graph.input_nodes]
    close(graph, values, rtol=1e-11)


def test_views_of_memory():
    whole = View("p", 0, (4, 6), contiguous((4, 6)), "float64")
    numbers = np.arange(24).reshape(4, 6)

    def elements(view):
        places = np.indices(view.shape).reshape(len(view.shape), -1).T
        return [view.offset + int(place @ np.array(view.strides)) for place in places]

    assert elements(whole.sliced((1, 4), (3, 2), (1, -1))) == numbers[1:, 4:2:-1].ravel().tolist()
    assert elements(whole.permuted((1, 0))) == numbers.T.ravel().tolist()
    assert whole.reshaped((2, 12)) == View("p", 0, (2, 12), (12, 1), "float64")
    assert whole.permuted((1, 0)).reshaped((24,)) is None
    assert elements(whole.permuted((1, 0)).reshaped((6, 1, 4))) == numbers.T.ravel().tolist()
    assert merged((4, 6), [whole, whole]) == ((24,), [(1,), (1,)])
    assert merged((4, 6), [whole, whole.sliced((0, 0), (4, 6), (1, 1)).permuted((0, 1))])[0] == (24,)
    row = View("q", 0, (6,), (1,), "float64").repeated((4, 6), (1,))
    assert merged((4, 6), [whole, row]) == ((4, 6), [(6, 1), (0, 1)])


# ---- threads, no compiler ------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_compiler)])
def test_threads_do_not_disturb_each_other(backend):
    graph = symad.value_and_gradient(symad.trace(chains, inputs=[(300, 100), (100,), (300, 1), ()]))
    kernel = lower(graph, backend=backend)
    sets = [[RNG.normal(size=s) for s in ((300, 100), (100,), (300, 1), ())] for _ in range(4)]
    expected = [kernel(*values) for values in sets]
    wrong = []

    def work(k):
        for _ in range(10):
            for one, other in zip(kernel(*sets[k]), expected[k], strict=True):
                if not np.allclose(one, other, rtol=1e-12):
                    wrong.append(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_without_a_compiler_arrays_run_in_numpy(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    c_compiler.compiler.cache_clear()
    try:
        with pytest.warns(UserWarning, match="no C compiler"):
            kernel = lower(symad.trace(lambda x: np.tanh(x) * x, inputs=[(3,)]), backend="c")
        np.testing.assert_allclose(kernel(np.ones(3)), np.tanh(1.0) * np.ones(3))
    finally:
        c_compiler.compiler.cache_clear()


# ---- everything ----------------------------------------------------------------------------------


@pytest.mark.slow
@needs_compiler
def test_every_op_equals_numpy_code():
    from tests.gpu.lowering.op_cases import example_graphs, example_values

    count = 0
    for parameters in list(example_graphs()):
        graph, dims = parameters.values
        if any(type(n.op).__name__ == "Dimension" for n in graph.nodes):
            continue
        values = example_values(graph, dims)
        if any(type(n.op).__name__ == "MatrixPower" for n in graph.nodes):
            values = [np.asarray(3.0) if np.ndim(v) == 0 else v for v in values]
        compiled, plain = (lower(graph, backend=b)(*values) for b in ("c", "numpy"))
        sides = [side if isinstance(side, tuple) else (side,) for side in (compiled, plain)]
        for one, other in zip(*sides, strict=True):
            one, other = (a.toarray() if hasattr(a, "toarray") else np.asarray(a) for a in (one, other))
            scale = max(1, np.max(np.abs(other), initial=0))
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * scale, err_msg=parameters.id)
        count += 1
    assert count > 100


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-9), ("float32", 3e-3)])
def test_every_model_equals_numpy_code(dtype, rtol):
    from symad.models.layers.parameters import trace_model
    from tests.gpu.lowering import generative_cases, model_cases

    for name, (model, loss, data) in {**model_cases.CASES, **generative_cases.CASES}.items():
        graph = trace_model(getattr(model, loss), model.shapes, *data)
        graph = symad.value_and_gradient(graph, list(model.shapes))
        values = [*(0.5 * RNG.normal(size=shape) for shape in model.shapes.values()), *data]
        compiled, plain = (lower(graph, backend=b, dtype=dtype)(*values) for b in ("c", "numpy"))
        for one, other in zip(compiled, plain, strict=True):
            scale = max(1, np.max(np.abs(other)))
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * scale, err_msg=name)


@needs_compiler
def test_only_pieces_of_an_array_that_is_read_whole_are_left_alone():
    def step(state, x):
        both = state + x
        return np.concatenate([np.tanh(both[:, 2:]), both[:, :2] * both[:, 2:]], axis=1) + 0 * both

    def loss(h0, xs):
        return np.sum(functions.scan(step, h0, xs) ** 2)

    graph = symad.value_and_gradient(symad.trace(loss, inputs=[(3, 4), (5, 3, 4)]))
    close(graph, [RNG.normal(size=(3, 4)), RNG.normal(size=(5, 3, 4))])


@needs_compiler
def test_rows_of_one_element_fill_one_place_of_a_buffer():
    """NumPy gives axes of one element the stride 0: rows of (n, 1) filled buffers of 1024 places."""
    valley = symad.trace(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), [(2,)])
    source = lower(symad.vmap(symad.value_and_gradient(valley)), backend="c").c_source
    filled = [line for line in source.splitlines() if "symad_copy(there[k]" in line]
    assert filled and all(", n, sizes[k])" in line or ", columns, sizes[k])" in line for line in filled)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_share_what_calls_them(dtype):
    """One vector loop for each kernel, and one driver for arrays of all layouts."""

    def chains(count):
        values = [lambda a, k=k: np.exp(-(a**2) / (k + 2)) + k * a for k in range(count)]
        parts = symad.trace(lambda a: tuple(np.cumsum(f(a)) for f in values), [(3000,)])
        return lower(parts, "c", dtype=dtype)

    few, many = (chains(count).c_source.splitlines() for count in (2, 12))
    assert len(many) - len(few) <= 10 * 25 and sum("omp parallel" in line for line in many) == 1
    kernel, plain = chains(3), lower(chains(3).origin.graph, dtype=dtype)
    whole = RNG.normal(size=6000).astype(dtype)
    for values in (whole[:3000], whole[::2], whole[::-2], np.broadcast_to(whole[:1], (3000,))):
        for one, other in zip(kernel(values), plain(values), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12 if dtype == "float64" else 1e-4)


@needs_compiler
def test_states_before_and_after_each_step_share_memory():
    graph = symad.value_and_gradient(symad.trace(lstm, inputs=SHAPES))
    kernel = close(graph, [RNG.normal(size=s) for s in SHAPES])
    body = kernel.source.rpartition("\ndef ")[2]
    assert "_new((2, 7, 2, 3), np.float64).swapaxes(0, 1)" in body  # the parts (h, c) lie apart
    assert "np.concatenate" not in body


@needs_compiler
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_states_that_only_the_next_step_needs(steps):
    def loss(h0, W, xs):
        return np.sum(functions.scan(lambda h, x: np.tanh(h @ W + x), h0, xs)[-1] ** 2)

    graph = symad.gradient(symad.trace(loss, inputs=[(2, 3), (3, 3), (steps, 2, 3)]), wrt=[1, 2])
    kernel = close(graph, [RNG.normal(size=s) for s in [(2, 3), (3, 3), (steps, 2, 3)]], rtol=1e-11)
    assert steps < 3 or "_new((2, 2, 3), np.float64)" in kernel.source  # two places, in turn


# ---- kernel matrices times vectors -----------------------------------------------------------------


def kernel_sums(x, v, w, gamma):
    square = np.sum(x**2, axis=1)
    K = np.exp(-gamma * (square[:, None] + square[None, :] - 2 * (x @ x.T)))
    return np.sum((K @ v) ** 2) + np.sum(w * (K @ w)) + np.sum(np.tanh(K @ v) * v)


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("n", [9, 600])  # whole, and in blocks of rows
def test_a_kernel_matrix_is_summed_where_it_is_computed(n):
    graph = symad.value_and_gradient(symad.trace(kernel_sums, inputs=[(n, 3), (n,), (n,), ()]))
    rng = np.random.default_rng(5)
    values = [rng.normal(size=(n, 3)), rng.normal(size=n), rng.normal(size=n), 0.3]
    kernel = close(graph, values, rtol=1e-10)
    assert "_row(const ptrdiff_t rows" in kernel.c_source


@needs_compiler
def test_a_vector_made_of_all_rows_comes_before_the_first():
    def program(x, v):
        e = np.exp(x * v[:, None])
        first = e @ v  # (n,), needs whole rows
        return e @ first + np.exp(first) * v  # again over rows, of what all rows have given

    n = 12
    rng = np.random.default_rng(6)
    x, v = rng.normal(size=(n, n)), rng.normal(size=n)
    found = lower(symad.trace(program, inputs=[(n, n), (n,)]), backend="c")(x, v)
    e = np.exp(x * v[:, None])
    np.testing.assert_allclose(found, e @ (e @ v) + np.exp(e @ v) * v, rtol=1e-12)


FORKED = """
import os
import numpy as np
import symad
from symad.numeric import lower

def program(x):
    return np.sum(np.tanh(x) @ np.exp(-x))

kernel = lower(symad.trace(program, inputs=[(600, 600)]), backend="c")
x = np.linspace(-1, 1, 360_000).reshape(600, 600)
first = kernel(x)  # starts threads, which a forked process does not have
child = os.fork()
if child == 0:
    os._exit(0 if abs(kernel(x) - first) < 1e-6 * abs(first) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.thorough
@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_does_not_wait_for_threads_it_does_not_have():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        env=os.environ | {"OMP_NUM_THREADS": "2"}, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0"], done.stderr


@needs_compiler
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), None])
def test_sums_of_chains_over_any_axes(axis):
    def total(x, y):
        return np.sum(np.tanh(x + np.sin(y)), axis=axis)

    x, y = RNG.normal(size=(5, 7, 3)), RNG.normal(size=(5, 7, 3))
    found = lower(symad.trace(total, [(5, 7, 3)] * 2), backend="c")(x, y)
    assert np.shape(found) == np.shape(total(x, y))
    np.testing.assert_allclose(found, total(x, y), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_chains_read_constant_arrays_of_integers_as_numbers(dtype):
    weights = np.arange(3)
    graph = symad.value_and_gradient(symad.trace(lambda x: np.sum(np.sum(x, 1) ** 2 * weights), [(5, 4, 3)]))
    x = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(dtype)
    value, slope = lower(graph, backend="c", dtype=dtype)(x)
    sums = x.sum(axis=1).astype(float)
    assert slope.dtype == dtype
    rel = 1e-13 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(value, np.sum(sums**2 * weights), rtol=rel)
    expected = np.broadcast_to((2 * sums * weights)[:, None], x.shape)
    np.testing.assert_allclose(slope, expected, rtol=0, atol=rel * np.abs(expected).max())
