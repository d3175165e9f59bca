"""Matrix products in CuPy code: one call for each stack, every type, transposes by flags, no copies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.graph import Graph
from symad.gpu.passes.fusion import two_at_a_time
from symad.gpu.printers.products import product_source
from symad.numeric import lower
from symad.numeric.fusion.chains import fuse_sums
from symad.ops.basic.contraction import Einsum
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, agree, library, on_device
from tests.gpu.cupy_standin import cuda
from tests.gpu.shim.driver import SCHEDULES, schedule

RNG = np.random.default_rng(12)
SIZES = dict(zip("abcijkmnpq", (2, 3, 2, 4, 5, 6, 3, 4, 2, 5), strict=True))
SPECS = [
    "mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn", "mk,kn->nm", "mk,k->m", "k,km->m", "k,k->", "ij,ij->",
    "bmk,bkn->bmn", "bmk,bnk->bmn", "bkm,bkn->bnm", "bmk,kn->bmn", "mk,bkn->bmn",
    "bhmk,bhnk->bhmn".replace("h", "c"), "bmck,bnck->bcmn", "bcmn,bnck->bmck", "bmck,nck->bmn",
    "bmk,bk->bm", "bk,bk->b", "mbk,knb->bnm", "abcij,abcjk->abcik", "mck,nkc->mn", "mk,nkb->bmn",
    "ij,kl->ik".replace("l", "q"), "ij,jk,kn->in", "i,ij,j->", "bij,bjk,bkm->bim", "ii,ij->j", "i,j,ij->i",
    "bi,ci,ij,bcj->bc", "ijq,jq,kq->ik",
]  # fmt: skip


def arrays_of(spec):
    return [RNG.normal(size=[SIZES[c] for c in part]) for part in spec.split("->")[0].split(",")]


def graph_of(spec):
    return symad.trace(lambda *a: np.einsum(spec, *a), [a.shape for a in arrays_of(spec)])


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("spec", SPECS)
def test_contractions_equal_einsum(spec, dtype, where):
    pytest.importorskip("ml_dtypes")
    values = [v.astype(dtype).astype(float) for v in arrays_of(spec)]
    expected = np.einsum(spec, *values)
    rtol = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    with library(where) as cp:
        kernel = lower(graph_of(spec), backend="cupy", dtype=dtype)
        got = kernel(*on_device(cp, values, dtype)).get().astype(float)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("spec", ["mk,kn->nm", "bkm,bkn->bnm", "mbk,knb->bnm", "bmck,bnck->bcmn", "k,k->"])
def test_products_without_cublas(spec, dtype, where):
    """By the library's own kernel, for graphs that are recorded."""
    pytest.importorskip("ml_dtypes")
    values = [v.astype(dtype).astype(float) for v in arrays_of(spec)]
    expected = np.einsum(spec, *values)
    rtol = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1e-2}[dtype]
    with library(where) as cp:
        with symad.gpu.options(capture=True):
            kernel = lower(graph_of(spec), backend="cupy", dtype=dtype)
        assert "cublas" not in kernel.source
        got = kernel(*on_device(cp, values, dtype)).get().astype(float)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize(("rows", "depth", "columns"), [(64, 32, 64), (130, 77, 65), (1, 300, 2), (70, 1, 3)])
@pytest.mark.parametrize("turned", itertools.product([False, True], repeat=2))
def test_blocks_of_products_without_cublas(rows, depth, columns, turned):
    a, b = RNG.normal(size=(2, rows, depth)), RNG.normal(size=(2, depth, columns))
    left, right = ("bkm" if turned[0] else "bmk"), ("bnk" if turned[1] else "bkn")
    values = [np.swapaxes(x, 1, 2) if t else x for x, t in zip((a, b), turned, strict=True)]
    graph = symad.trace(lambda x, y: np.einsum(f"{left},{right}->bmn", x, y), [v.shape for v in values])
    with library() as cp:
        with symad.gpu.options(capture=True):
            kernel = lower(graph, backend="cupy", dtype="float32")
        args = on_device(cp, values, "float32")
        found = []
        for order in SCHEDULES:
            with schedule(order, 2):
                found.append(kernel(*args).get())
    expected = a.astype("float32").astype(float) @ b.astype("float32").astype(float)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-6 * np.sqrt(depth) * 10)
    assert all(f.tobytes() == found[0].tobytes() for f in found)


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_kernel_of_products_compiles(dtype):
    for arch in ("sm_80", "sm_90"):
        _, kernels = nvrtc.compile_text("".join(product_source(dtype)), arch)
        assert kernels["matrix_product"].spilled == 0


@pytest.mark.parametrize("spec", SPECS)
def test_the_pass_keeps_values(spec):
    """Evaluated alone: graphs before and after are equal, and no contraction has three operands."""
    graph, values = graph_of(spec), arrays_of(spec)
    made = Graph(graph.input_nodes, two_at_a_time(graph.output_nodes), graph.structure)
    np.testing.assert_allclose(made(*values), np.einsum(spec, *values), rtol=1e-12, atol=1e-12)
    for node in made.nodes:
        if isinstance(node.op, Einsum) and len(node.args) > 1:
            assert len(node.args) == 2
            assert all(len(set(labels)) == len(labels) for labels in node.op.inputs)
    assert len(fuse_sums(made.output_nodes, single=True)) == 1


@pytest.mark.parametrize("spec", [s for s in SPECS if s.count(",") == 1 and "ii" not in s])
def test_one_call_and_no_copies(spec):
    """Also of transposed views: what differs is a flag."""
    summed = {*spec.split("->")[0]} - {*spec.split("->")[1], ","}
    with library() as cp:
        kernel = lower(graph_of(spec), backend="cupy")
        for orders in itertools.product((1, -1), repeat=2):
            values = [
                v[::1] if o == 1 else np.ascontiguousarray(v.T).T
                for v, o in zip(arrays_of(spec), orders, strict=True)
            ]
            arrays = on_device(cp, values)
            before = cuda.counts["launches"]
            kernel(*arrays)
            launched = cuda.counts["launches"] - before
            matrices = all(v.ndim <= 2 for v in values) and len(summed) == 1
            assert launched == 1 if matrices else launched <= 3


def test_operands_that_run_backwards():
    g = symad.trace(lambda a, b: a[::-1] @ b[:, ::-1] + a[:, ::-1] @ b[..., ::-1], [(3, 4, 4), (3, 4, 3)])
    agree(g, [RNG.normal(size=(3, 4, 4)), RNG.normal(size=(3, 4, 3))])


def test_operands_that_are_parts_of_arrays_are_not_copied():
    graph = symad.trace(
        lambda a, b: np.einsum("bmk,bkn->bmn", a[:, 1:, ::1], b[1:, :, :3]), [(2, 5, 4), (3, 4, 6)]
    )
    values = [RNG.normal(size=s) for s in ((2, 5, 4), (3, 4, 6))]
    with library() as cp:
        arrays = on_device(cp, values)
        before = cuda.counts["launches"]
        got = lower(graph, backend="cupy")(*arrays)
        assert cuda.counts["launches"] == before + 1
        np.testing.assert_allclose(got.get(), values[0][:, 1:] @ values[1][1:, :, :3], rtol=1e-12)
    agree(
        symad.trace(lambda a, b: a[::2] @ b[:, ::-1], [(4, 4), (4, 4)]),
        [v[0] if v.ndim > 2 else v for v in RNG.normal(size=(2, 4, 4))],
    )


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "f", [lambda a, b: a @ b, lambda a, b: np.sum(a * b), lambda a, b: np.sum(a * b, axis=0)]
)
def test_half_precisions_add_in_float32(f, dtype, where):
    pytest.importorskip("ml_dtypes")
    graph = symad.trace(f, [(5000,), (5000,)])
    with library(where) as cp:
        ones = on_device(cp, np.ones((2, 5000)), dtype)
        total = lower(graph, backend="cupy", dtype=dtype)(*ones).get().astype(float)
    assert abs(total - 5000) <= 5000 / 256  # adding in float16 stops at 2048, in bfloat16 at 256


def test_tf32_is_an_option_by_name():
    graph = symad.trace(lambda a, b: a @ b, [(64, 64), (64, 64)])
    values = RNG.normal(size=(2, 64, 64))
    exact = values[0] @ values[1]
    with library() as cp:
        errors = {}
        for tf32 in (False, True):
            with symad.gpu.options(tf32=tf32):
                kernel = lower(graph, backend="cupy", dtype="float32")
            assert ("FAST_TF32" in kernel.source) is tf32
            errors[tf32] = np.abs(kernel(*on_device(cp, values, "float32")).get() - exact).max()
        assert errors[False] < 1e-4 < errors[True] < 0.1
        with symad.gpu.options(tf32=True):
            assert "TF32" not in lower(graph, backend="cupy").source


def test_nothing_of_cublas_is_called_while_a_stream_records():
    graph = symad.trace(lambda a, b: a @ b, [(3, 3), (3, 3)])
    chain = symad.trace(lambda a, b: np.tanh(a) * b, [(3, 3), (3, 3)])
    with library() as cp:
        arrays = on_device(cp, RNG.normal(size=(2, 3, 3)))
        product, plain = lower(graph, backend="cupy"), lower(chain, backend="cupy")
        with cp.cuda.Stream(ptr=5) as stream:
            stream.begin_capture()
            plain(*arrays)
            with pytest.raises(NotImplementedError, match="stream capture"):
                product(*arrays)
            stream.end_capture()


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_scans_of_matrices_and_empty_products(dtype, where):
    pytest.importorskip("ml_dtypes")
    n = sp.Symbol("n", integer=True, nonnegative=True)
    graph = symad.trace(lambda a, b: functions.affine_scan(a, b), [(5, 3, 3), (5, 3)])
    values = [
        (0.3 * v).astype(dtype).astype(float) for v in (RNG.normal(size=(5, 3, 3)), RNG.normal(size=(5, 3)))
    ]
    agree(graph, values, dtype, 1e-12 if dtype == "float64" else 3e-2, where)
    empty = symad.trace(lambda a, b: a @ b, [(2, n), (n, 3)])
    agree(empty, [np.ones((2, 0)), np.ones((0, 3))], dtype, where=where)
