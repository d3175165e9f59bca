"""Steps of training on the stand-in: recorded once, replayed, equal to the NumPy loop and to PyTorch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError, ShapeError
from symad.gpu.compile import GpuError
from symad.gpu.training.optimizer import TOGETHER, optimizer_source
from symad.models.layers.parameters import trace_model
from symad.numeric.training.loop import train
from symad.numeric.training.optimizers import SGD, Adam, RMSprop, adamw
from symad.numeric.training.schedules import warmup_cosine
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import library
from tests.gpu.cupy_standin import cuda
from tests.gpu.launch_cases import CASES

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(8)
STEPS = 4


def problem(name):
    """A loss, its parameters, and one batch for each step."""
    function, shapes, data = CASES[name]
    graph = trace_model(function, shapes, *data)
    parameters = {k: 0.3 * RNG.normal(size=s) for k, s in shapes.items()}
    batches = [
        tuple(RNG.integers(0, 4, d.shape) if d.dtype.kind in "iu" else RNG.normal(size=d.shape) for d in data)
        for _ in range(STEPS)
    ]
    return graph, parameters, batches


def ran(graph, parameters, batches, optimizer, cp, **options):
    """The losses and the parameters after steps on the device."""
    step = symad.gpu.training_step(graph, parameters, optimizer, **options)
    losses = [float(step(*(cp.asarray(b) for b in batch)).get()) for batch in batches]
    return losses, {name: value.get() for name, value in step.parameters().items()}, step


OPTIMIZERS = {
    "adamw": adamw(0.01, 0.1, "matrices"),
    "adam": Adam(0.02, penalty=0.1),
    "sgd": SGD(0.1),
    "nesterov": SGD(0.05, momentum=0.9, penalty=0.01, nesterov=True),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "capture"), [*((kind, True) for kind in OPTIMIZERS), ("adamw", False)])
def test_steps_equal_those_of_the_training_loop(kind, capture):
    graph, parameters, batches = problem("feedforward")
    options = {"clip": 0.5, "schedule": warmup_cosine(2, 6)}
    known = train(graph, parameters, iter(batches), OPTIMIZERS[kind], STEPS, **options)
    with library() as cp:
        losses, found, step = ran(
            graph, parameters, batches, OPTIMIZERS[kind], cp,
            steps=STEPS, dtype="float64", capture=capture, **options,
        )  # fmt: skip
        assert step.progress()["number"] == STEPS
    np.testing.assert_allclose(losses, known.losses, rtol=1e-12)
    for name, value in known.parameters.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "language model, 1 layer",
        "classifier",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("lstm, 100 steps", "transformer block", "vae")),
    ],
)
def test_models_are_recorded_whole(name):
    """One launch a step, no wait, and the numbers of the loop in float64."""
    graph, parameters, batches = problem(name)
    known = train(graph, parameters, iter(batches[:2]), adamw(0.01), 2)
    with library() as cp:
        step = symad.gpu.training_step(graph, parameters, adamw(0.01), dtype="float64")
        arrays = [[cp.asarray(b) for b in batch] for batch in batches]
        first = step(*arrays[0])
        second = step(*arrays[1])  # recorded
        np.testing.assert_allclose([first.get(), second.get()], known.losses, rtol=1e-9)
        for key, value in step.parameters().items():
            np.testing.assert_allclose(value.get(), known.parameters[key], rtol=1e-5, atol=1e-7)
        cuda.counts.clear()
        step(*arrays[2])
        assert cuda.counts["graphs"] == 1
        assert cuda.counts["synchronizations"] == cuda.counts["products"] == cuda.counts["copies"] == 0
        assert cuda.counts["launches"] <= len(batches[0]) + 1  # the batch and the loss


@pytest.mark.thorough
def test_the_optimizer_is_three_launches():
    graph, parameters, batches = problem("feedforward")
    with library() as cp:
        counted = []
        for _ in range(2):
            step = symad.gpu.training_step(graph, parameters, adamw(0.01), dtype="float32", capture=False)
            step(*(cp.asarray(b) for b in batches[0]))
            before = cuda.counts["launches"]
            step._optimizer.step([cp.zeros(s) for s in step._optimizer.layout.shapes])
            counted.append(cuda.counts["launches"] - before - len(parameters))
        assert counted == [3, 3]


@pytest.mark.thorough
def test_many_parameters_take_few_launches():
    count = TOGETHER + 30
    shapes = [(k % 5 + 1,) for k in range(count)]
    names = [f"p{k}" for k in range(count)]
    inputs = [sp.tensor.array.expressions.ArraySymbol(n, s) for n, s in zip(names, shapes, strict=True)]
    graph = symad.trace(lambda *p: sum(np.sum(x**2) for x in p), inputs)
    parameters = {n: RNG.normal(size=s) for n, s in zip(names, shapes, strict=True)}
    known = train(graph, parameters, iter([()] * 2), SGD(0.1), 2, clip=3.0)
    with library() as cp:
        _, found, _ = ran(graph, parameters, [(), ()], SGD(0.1), cp, clip=3.0, dtype="float64")
    for name, value in known.parameters.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_master_weights_move_by_less_than_the_short_type_shows(dtype):
    pytest.importorskip("ml_dtypes")
    graph, parameters, batches = problem("feedforward")
    exact = train(graph, parameters, iter(batches * 10), adamw(1e-4), 10 * STEPS)
    with library() as cp:
        losses, found, step = ran(graph, parameters, batches * 10, adamw(1e-4), cp, dtype=dtype)
        kept = step._optimizer.copy.get()
        values = step._optimizer.values.get()
    np.testing.assert_array_equal(kept, values.astype(dtype))
    np.testing.assert_allclose(losses, exact.losses, rtol=0.1)
    for name, value in found.items():
        assert value.dtype == np.float32
        moved, wanted = value - parameters[name], exact.parameters[name] - parameters[name]
        assert np.abs(moved - wanted).max() < 0.5 * 10 * STEPS * 1e-4  # each step moves by about 1e-4
        assert np.corrcoef(moved.ravel(), wanted.ravel())[0, 1] > 0.9 or moved.size < 3


@pytest.mark.thorough
def test_a_step_that_overflows_is_skipped_and_lowers_the_factor():
    graph, parameters, batches = problem("feedforward")
    rule = symad.gpu.LossScale(start=1024.0, interval=2)
    with library() as cp:
        step = symad.gpu.training_step(graph, parameters, adamw(0.01), dtype="float16", loss_scale=rule)
        arrays = [[cp.asarray(b) for b in batch] for batch in batches]
        wild = [cp.asarray(1e4 * b) for b in batches[0]]
        step(*arrays[0])
        before = {k: v.get() for k, v in step.parameters().items()}
        step(*wild)
        after = step.progress()
        assert (after["number"], after["skipped"], after["scale"]) == (2, 1, 512)
        assert all(np.array_equal(before[k], v.get()) for k, v in step.parameters().items())
        step(*arrays[1])
        step(*arrays[2])
        assert step.progress()["scale"] == 1024
        assert any(not np.array_equal(before[k], v.get()) for k, v in step.parameters().items())


@pytest.mark.thorough
def test_the_factor_of_the_loss_follows_pytorch():
    """The same gradients, finite and not, through both rules."""
    torch = pytest.importorskip("torch")
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    parameter = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    a, b = (sp.tensor.array.expressions.ArraySymbol(name, (3,)) for name in "ab")
    graph = symad.trace(lambda p, x: np.sum(p * x), [a, b])
    rows = RNG.normal(size=(12, 3)).astype("float32")
    rows[[2, 3, 9], 1] = np.inf
    with library() as cp:
        step = symad.gpu.training_step(
            graph, {"a": np.zeros(3)}, Adam(0.1), loss_scale=symad.gpu.LossScale(64.0, interval=3)
        )
        for row in rows:
            optimizer.zero_grad()
            parameter.grad = torch.tensor(row) * scaler.scale(torch.tensor(1.0))
            scaler.step(optimizer)
            scaler.update()
            step(cp.asarray(row))
            assert step.progress()["scale"] == scaler.get_scale()
        found = step.parameters()["a"].get()
    np.testing.assert_allclose(found, parameter.detach().numpy(), rtol=2e-6)


@pytest.mark.thorough
def test_other_shapes_are_refused_by_name_or_run_kernel_by_kernel():
    n = sp.Symbol("n", integer=True, positive=True)
    graph = trace_model(*CASES["feedforward"][:2], (n, 3), (n, 2))
    parameters = {k: 0.3 * RNG.normal(size=s) for k, s in CASES["feedforward"][1].items()}
    with library() as cp:
        short, long = ([cp.asarray(RNG.normal(size=(n, k))) for k in (3, 2)] for n in (4, 5))
        step = symad.gpu.training_step(graph, parameters, SGD(0.1))
        step(*short)
        with pytest.raises(ShapeError, match=r"has shape \(5, 3\), but the step .* recorded for \(4, 3\)"):
            step(*long)
        free = symad.gpu.training_step(graph, parameters, SGD(0.1), capture=False)
        free(*short)
        assert np.isfinite(free(*long).get())


def test_what_cannot_be_recorded_says_so():
    m = sp.tensor.array.expressions.ArraySymbol("m", (3, 3))
    graph = symad.trace(lambda m: np.sum(np.linalg.inv(m)), [m])
    with library():
        step = symad.gpu.training_step(graph, {"m": 4 * np.eye(3)}, SGD(0.1))
        step()
        with pytest.raises(GpuError, match="cannot be recorded as a CUDA graph"):
            step()
        free = symad.gpu.training_step(graph, {"m": 4 * np.eye(3)}, SGD(0.1), capture=False)
        free()
        free()


@pytest.mark.parametrize("form", ["graph", "decorated", "function", "expression"])
def test_a_step_takes_what_train_takes(form):
    x, y = sp.symbols("x y", real=True)
    expression = (x * y - 2) ** 2 + x**2
    made = {
        "graph": (symad.trace(expression, inputs=[x, y]), {}),
        "decorated": (symad.function(inputs=[x, y])(lambda x, y: (x * y - 2) ** 2 + x**2), {}),
        "function": (lambda x, y: (x * y - 2) ** 2 + x**2, {"inputs": [x, y]}),
        "expression": (expression, {"inputs": [x, y]}),
    }
    loss, options = made[form]
    batches = [(np.array(1.0),), (np.array(0.5),), (np.array(2.0),)]
    known = train(loss, {"x": 0.3}, iter(batches), SGD(0.1), 3, **options)
    with library() as cp:
        losses, found, _ = ran(loss, {"x": 0.3}, batches, SGD(0.1), cp, dtype="float64", **options)
    np.testing.assert_allclose(losses, known.losses, rtol=1e-13)
    np.testing.assert_allclose(found["x"], known.parameters["x"], rtol=1e-13)


@dataclass
class Line:
    """Parameters of a structure."""

    slope: np.ndarray
    offset: float


def squares(line, x, y):
    return np.mean((x @ line.slope + line.offset - y) ** 2)


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["dataclass", "list", "named batch"])
def test_steps_take_what_the_training_loop_takes(form):
    """A Python function with structures as arguments, and batches by name."""
    start = Line(np.zeros(3), 0.5)
    batches = [{"x": RNG.normal(size=(6, 3)), "y": RNG.normal(size=6)} for _ in range(STEPS)]
    shape = Line((3,), ())
    loss, parameters = squares, start
    if form == "list":
        loss, shape, parameters = (lambda p, x, y: squares(Line(*p), x, y)), [(3,), ()], [np.zeros(3), 0.5]
    inputs = {"line" if loss is squares else "p": shape, "x": (6, 3), "y": (6,)}
    known = train(loss, parameters, iter(batches), Adam(0.1), STEPS, inputs=inputs)
    with library() as cp:
        step = symad.gpu.training_step(loss, parameters, Adam(0.1), dtype="float64", inputs=inputs)
        for batch in batches:
            arrays = {name: cp.asarray(value) for name, value in batch.items()}
            value = step(**arrays) if form == "named batch" else step(*arrays.values())
        np.testing.assert_allclose(float(value.get()), known.losses[-1], rtol=1e-11)
        found = step.parameters()
    slope = found.slope if isinstance(found, Line) else found[0]
    wanted = known.parameters.slope if isinstance(known.parameters, Line) else known.parameters[0]
    np.testing.assert_allclose(slope.get(), wanted, rtol=1e-11)


def test_bad_input_is_named():
    graph, parameters, batches = problem("feedforward")
    name = next(iter(parameters))
    with library() as cp:
        for error, match, given in (
            ("not for RMSprop", "SGD and Adam", {"optimizer": RMSprop()}),
            ("steps", "known number of steps", {"schedule": warmup_cosine(1, 4)}),
            ("clip", "clip=0", {"clip": 0}),
            ("dtype", "float8", {"dtype": "float8"}),
            ("nan", name, {"parameters": parameters | {name: np.nan * parameters[name]}}),
        ):
            options = {"parameters": parameters, "optimizer": SGD(0.1)} | given
            with pytest.raises(EvaluationError, match=match):
                symad.gpu.training_step(graph, options.pop("parameters"), options.pop("optimizer"), **options)
            assert error
        step = symad.gpu.training_step(graph, parameters, SGD(0.1))
        with pytest.raises(TypeError, match="give arrays on the device"):
            step(*batches[0])
        with pytest.raises(EvaluationError, match="1 arrays for the step of"):
            step(cp.asarray(batches[0][0]))


def test_a_wrong_index_in_a_replay_is_an_error():
    graph, parameters, batches = problem("classifier")
    with library() as cp:
        step = symad.gpu.training_step(graph, parameters, SGD(0.1))
        for batch in batches[:3]:
            step(*(cp.asarray(b) for b in batch))
        wrong = batches[3][0], np.full_like(batches[3][1], 9)
        step(*(cp.asarray(b) for b in wrong))
        with pytest.raises(IndexError, match="length 4"):
            symad.gpu.check_indices()


def test_memory_is_reported():
    graph, parameters, batches = problem("feedforward")
    with library() as cp:
        step = symad.gpu.training_step(graph, parameters, adamw(0.01))
        step(*(cp.asarray(b) for b in batches[0]))
        found = step.memory()
    least = 3 * 4 * sum(v.size for v in parameters.values())
    assert least <= found["parameters"] < least + 3 * 32 * len(parameters) + 64
    assert 0 < found["in use"] <= found["peak"]


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_kernels_compile(dtype):
    for optimizer in (adamw(0.01), SGD(0.1, momentum=0.9)):
        source = optimizer_source(optimizer, dtype, 1.0, symad.gpu.LossScale())
        _, kernels = nvrtc.compile_text(source, "sm_90")
        assert {name: k.spilled for name, k in kernels.items()} == dict.fromkeys(
            ("gradient_squares", "update_parameters", "count_step"), 0
        )
