"""Graphs as functions of PyTorch tensors: values, derivatives of every order, batches, dtypes, memory."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.functions import scan

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

x, y = sp.symbols("x y", real=True)


def tensor(*shape, seed=0, dtype=torch.float64):
    made = torch.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)
    return made.requires_grad_()


def network(W, b, X):
    return np.tanh(X @ W + b)


def states(W, U, xs):
    return scan(lambda h, z: np.tanh(W @ h + U @ z), np.zeros(3), xs)


CASES = {
    "scalars": (lambda: symad.torch.as_function(sp.sin(x * y) + sp.exp(x)), [(), ()]),
    "a layer": (lambda: symad.torch.as_function(network, [(3, 2), (2,), (4, 3)]), [(3, 2), (2,), (4, 3)]),
    "a recurrence": (
        lambda: symad.torch.as_function(states, [(3, 3), (3, 2), (4, 2)]), [(3, 3), (3, 2), (4, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_gradcheck_and_gradgradcheck(case):
    make, shapes = CASES[case]
    function, tensors = make(), [tensor(*shape, seed=k) for k, shape in enumerate(shapes)]
    assert gradcheck(function, tensors, check_forward_ad=True)
    assert gradgradcheck(function, tensors)


@pytest.mark.thorough
def test_the_compiled_backend_gives_the_same_derivatives():
    function = symad.torch.as_function(network, [(3, 2), (2,), (4, 3)], backend="c")
    assert gradcheck(function, [tensor(3, 2), tensor(2, seed=1), tensor(4, 3, seed=2)])


def test_values_and_gradients_are_pytorchs():
    W, b, X = tensor(3, 2), tensor(2, seed=1), tensor(5, 3, seed=2)
    n = sp.Symbol("n", integer=True, positive=True)
    ours = symad.torch.as_function(network, [(3, 2), (2,), (n, 3)])(W, b, X)
    theirs = torch.tanh(X @ W + b)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-14)
    found = torch.autograd.grad((ours**3).sum(), (W, b, X))
    for one, other in zip(found, torch.autograd.grad((theirs**3).sum(), (W, b, X)), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


def test_structures_of_arguments_and_results():
    def f(params, z):
        return {"value": np.sum(params["W"] @ z), "norm": np.sum(z**2)}

    function = symad.torch.as_function(f, [{"W": (2, 3)}, (3,)])
    W, z = tensor(2, 3), tensor(3, seed=1)
    made = function({"W": W}, z)
    assert set(made) == {"value", "norm"}
    (bar,) = torch.autograd.grad(made["value"], W)
    assert torch.allclose(bar, z.detach().expand(2, 3))


def test_scalar_functions_take_tensors_of_points_that_broadcast():
    function = symad.torch.as_function(sp.sin(x) * y)
    a, b = tensor(4, 1), tensor(3, seed=1)
    made = function(a, b)
    assert made.shape == (4, 3)
    assert torch.allclose(made, torch.sin(a) * b)
    bars = torch.autograd.grad(made.sum(), (a, b))
    expected = torch.autograd.grad((torch.sin(a) * b).sum(), (a, b))
    assert all(torch.allclose(p, q) for p, q in zip(bars, expected, strict=True))


def test_only_what_needs_a_gradient_is_differentiated():
    function = symad.torch.as_function(network, [(3, 2), (2,), (4, 3)])
    W, b, X = tensor(3, 2), tensor(2, seed=1).detach(), tensor(4, 3, seed=2).detach()
    function(W, b, X).sum().backward()
    assert W.grad is not None and b.grad is None
    assert len(function.bridge.pullback((0,)).graph.output_nodes) == 1


@pytest.mark.thorough
def test_torch_func_composes():
    function = symad.torch.as_function(sp.sin(x) * y**2)
    a, b = torch.tensor(0.3, dtype=torch.float64), torch.tensor(1.7, dtype=torch.float64)
    hessian = torch.func.hessian(function, argnums=(0, 1))(a, b)
    assert torch.allclose(hessian[0][1], 2 * b * torch.cos(a))
    rows = torch.func.vmap(torch.func.grad(function), in_dims=(0, None))(torch.linspace(0, 1, 5).double(), b)
    assert torch.allclose(rows, torch.cos(torch.linspace(0, 1, 5).double()) * b**2)


def test_torch_func_over_arrays():
    function = symad.torch.as_function(network, [(3, 2), (2,), (4, 3)])
    W, b, X = (t.detach() for t in (tensor(3, 2), tensor(2, seed=1), tensor(6, 4, 3, seed=2)))
    made = torch.func.vmap(function, in_dims=(None, None, 0))(W, b, X)
    assert torch.allclose(made, torch.tanh(X @ W + b))
    jacobian = torch.func.jacfwd(function)(W, b, X[0])
    expected = torch.func.jacrev(lambda W: torch.tanh(X[0] @ W + b))(W)
    assert torch.allclose(jacobian, expected)


def test_memory_is_shared_on_the_way_in():
    function = symad.torch.as_function(lambda z: z * 2.0, [(4,)])
    seen = []
    kernel = function.bridge.kernel("numpy", "float64")
    function.bridge.kernel = lambda *key: lambda *values: seen.extend(values) or kernel(*values)
    z = tensor(4)
    function(z)
    assert seen[0].__array_interface__["data"][0] == z.data_ptr()


def test_float32_stays_and_mixed_dtypes_are_promoted():
    function = symad.torch.as_function(network, [(3, 2), (2,), (4, 3)])
    single = [tensor(*s, dtype=torch.float32) for s in ((3, 2), (2,), (4, 3))]
    assert function(*single).dtype == torch.float32
    mixed = function(single[0].double(), *single[1:])
    assert mixed.dtype == torch.float64
    mixed.sum().backward()
    assert single[1].grad.dtype == torch.float32


def test_integers_are_indices_without_gradient():
    def rows(table, index):
        return symad.functions.lookup(table, index)

    function = symad.torch.as_function(rows, [(5, 2), (3,)])
    table, index = tensor(5, 2), torch.tensor([1, 4, 1])
    function(table, index).sum().backward()
    assert table.grad.tolist() == [[0, 0], [2, 2], [0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((torch.ones(2, dtype=torch.complex128), torch.ones(2)), "dense real tensor"),
        ((torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float16)), "float16 on the CPU"),
        ((torch.ones(2),), "missing: y"),
        ((torch.ones(2, device="meta"), torch.ones(2, device="meta")), "x on meta"),
    ],
)
def test_what_cannot_be_computed_is_named(values, message):
    with pytest.raises(symad.errors.SymadError, match=message):
        symad.torch.as_function(x * y)(*values)


def test_dtypes_of_torch_are_dtypes():
    from symad.numeric import lower

    kernel = lower(x * y, dtype=torch.float32)
    assert kernel(1.5, 2.0).dtype == np.float32
    with pytest.raises(symad.errors.LoweringError, match="float16"):
        lower(x * y, dtype=torch.float16)


def test_training_by_pytorchs_optimizer():
    n = sp.Symbol("n", integer=True, positive=True)

    def loss(w, X, t):
        return np.mean((X @ w - t) ** 2)

    function = symad.torch.as_function(loss, [(2,), (n, 2), (n,)])
    X = tensor(40, 2).detach()
    target = torch.tensor([1.5, -0.5], dtype=torch.float64)
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = function(w, X, X @ target)
        value.backward()
        return value

    optimizer.step(closure)
    assert torch.allclose(w, target, atol=1e-5)


@pytest.mark.gpu
def test_on_a_cuda_device():
    function = symad.torch.as_function(network, [(3, 2), (2,), (4, 3)])
    tensors = [t.detach().cuda().requires_grad_() for t in (tensor(3, 2), tensor(2), tensor(4, 3))]
    assert function(*tensors).is_cuda
    assert gradcheck(function, tensors)
    assert gradgradcheck(function, tensors)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_of_numpy_keep_their_type(dtype):
    """They were rounded to PyTorch's default, float32, without a word."""
    function = symad.torch.as_function(sp.exp(x) * y)
    u, v = np.array([0.3, 1.7], dtype), np.array([1.1, 2.0], dtype)
    for given in ((u, v), (u, torch.from_numpy(v)), (u, 2.0), (u[0], v)):
        made = function(*given)
        plain = [np.asarray(part) for part in given]
        assert made.dtype == getattr(torch, dtype)
        expected = np.exp(plain[0].astype("float64")) * plain[1].astype("float64")
        np.testing.assert_allclose(made, expected, rtol=4 * np.finfo(dtype).eps)
    assert torch.equal(function(u[::-1], v), function(u[::-1].copy(), v))
    assert function(0.3, 1.1).dtype == torch.get_default_dtype()
