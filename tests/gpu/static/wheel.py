"""CuPy's own wheel without a device: its names and signatures, and the text that it writes around a body.

CuPy is imported beside the stand-in and asked for nothing that needs a driver. The kernels of generated code
are handed to its own code generators (``_get_elementwise_kernel_code``, ``_create_reduction_function_code``
of CuPy 14), and the text is compiled by NVRTC with CuPy's headers and options.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from symad.gpu import compile as compiling
from tests.gpu.cupy_standin import installed, module
from tests.gpu.cupy_standin import kernels as standin
from tests.kept import digest, folder, kept

ARCHITECTURES = (75, 80, 86, 90, 100, 120)
HEADERS = "".join(
    f"#include <cupy/{name}>\n" for name in ("complex.cuh", "carray.cuh", "atomics.cuh", "math_constants.h")
)
MODULES = ("cupy", "cupyx", "cupy_backends")


def at_hand():
    """Whether CuPy is installed."""
    return importlib.util.find_spec("cupy") is not None


# ---- names and calls ------------------------------------------------------------------------------


def faults(source):
    """What generated text asks of CuPy that CuPy has not: names, and calls that bind to no signature."""
    tree = ast.parse(source)
    known = dict(_imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found, whole = _resolved(node, known)
            if whole and found is None:
                yield f"line {node.lineno}: {whole} does not exist"
        if isinstance(node, ast.Call):
            found, whole = _resolved(node.func, known)
            if found is not None and (problem := _binds(found, node)):
                yield f"line {node.lineno}: {ast.unparse(node)}: {problem}"


def _imports(tree):
    """The names that stand for modules of CuPy, or for what they hold, and what that is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in MODULES:
                    module = importlib.import_module(alias.name)
                    top = importlib.import_module(alias.name.split(".")[0])
                    yield alias.asname or alias.name.split(".")[0], module if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            module = importlib.import_module(node.module)
            for alias in node.names:
                found = getattr(module, alias.name, None)
                yield (
                    alias.asname or alias.name,
                    found or importlib.import_module(f"{node.module}.{alias.name}"),
                )


def _resolved(node, known):
    """What a dotted name stands for, or None, and the name; the name is empty where it is none of CuPy's."""
    words = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return None, ""
    found, name = known[node.id], node.id
    for word in reversed(words):
        name += f".{word}"
        if inspect.isdatadescriptor(getattr(type(found), word, None)):
            return None, ""  # a property, which may ask for the device
        found = getattr(found, word, None)
        if found is None:
            return None, name
    return found, name


def _binds(function, call):
    """Why a call does not bind to the signature of a function; empty if it does or has none."""
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    bind = signature.bind_partial if starred else signature.bind
    args = [a for a in call.args if not isinstance(a, ast.Starred)]
    try:
        bind(*args, **{k.arg: k.value for k in call.keywords if k.arg is not None})
    except TypeError as problem:
        return str(problem)
    return ""


# ---- kernels --------------------------------------------------------------------------------------


def texts(call, source=""):
    """(text, options, least compute capability) of the CUDA texts that a call makes on the stand-in.

    Launches are checked and compute nothing, their results are ones; only code that fails at ones computes.
    The kernels of attention and pairs are chosen among plans by the device, so all plans of a generated
    ``source`` are taken.
    """
    namespace = {}
    standin.MADE.clear()
    compiling._module.cache_clear()
    idle = SimpleNamespace(get_function=lambda name: Launched())
    with installed():
        exec(compile(source, "generated", "exec"), namespace)
        try:
            with (
                patch.multiple(standin, compiled=lambda *_: Launched(), _module=lambda code: idle),
                patch.object(np, "empty", np.ones),
                patch.object(module, "empty", module.ones),
            ):
                call()
        except (ArithmeticError, np.linalg.LinAlgError):
            call()
    planned = _planned(namespace)
    for text, least in planned.items():
        yield text, ("-std=c++17",), least
    for kernel in standin.MADE:
        if isinstance(kernel, standin.ReductionKernel):
            yield reduction_text(kernel), (), 75
        elif isinstance(kernel, standin.ElementwiseKernel):
            yield elementwise_text(kernel), (), 75
        elif kernel.code.removeprefix("#define SYMAD_UNALIGNED\n") not in planned:
            yield kernel.code, tuple(kernel.options), 75


class Launched:
    """A kernel that computes nothing."""

    def __call__(self, *args, **options):
        pass


def _planned(namespace):
    """The texts of the plans of a module, with the least compute capability of each."""
    planned = {}
    for name, value in namespace.items():
        if name.startswith("_plans_"):
            planned |= {launch[-1]: least for least, _, launches in value for launch in launches}
        elif name.startswith("_pair_plan") and isinstance(value, dict):
            products = value.get("products")
            planned |= {value["source"]: 75} | ({products["source"]: 80} if products else {})
    return planned


def _arguments(parameters, dimensions=1):
    """What CuPy knows of arguments: contiguous device arrays of the declared types, indexers, a number."""
    from cupy import ndarray
    from cupy._core._carray import Indexer
    from cupy._core._kernel import _ArgInfo

    def known(parameter):
        if parameter.dtype is None:
            return _ArgInfo(2, Indexer, None, dimensions, True, True)
        if parameter.name == "_block_stride":
            return _ArgInfo(3, int, np.dtype(parameter.dtype), 0, True, True)
        return _ArgInfo(1, ndarray, np.dtype(parameter.dtype), dimensions, True, True)

    return tuple(map(known, parameters))


def _declared(parameters):
    return ", ".join(f"{'raw ' * p.raw}{p.dtype} {p.name}" for p in parameters)


def elementwise_text(kernel):
    """The text that CuPy writes for an elementwise kernel, from what generated code gave."""
    import cupy
    from cupy._core import _kernel

    name, given = kernel.name, (_declared(kernel.inputs), _declared(kernel.outputs), kernel.body)
    real = cupy.ElementwiseKernel(*given, name, preamble=kernel.preamble)
    return HEADERS + _kernel._get_elementwise_kernel_code(
        _arguments(real.params), _kernel._TypeMap(()), real.params, real.operation, real.name, real.preamble
    )


def reduction_text(kernel):
    """The text that CuPy writes for a reduction over fewer than 2³¹ elements."""
    import cupy
    from cupy._core import _kernel, _reduction

    inputs, outputs, mapped, reduced, after, identity, name, kind, preamble = kernel.given
    real = cupy.ReductionKernel(
        inputs, outputs, mapped, reduced, after, identity, name, reduce_type=kind, preamble=preamble
    )
    return HEADERS + _reduction._ReductionKernel_get_cached_function_code(
        real.nin, real.nout, real._params, _arguments(real._params),
        _kernel._TypeMap((("IndexT", np.int32),)), real.name, 512, kind, identity, mapped, reduced, after,
        preamble, (),
    )  # fmt: skip


def architectures(text, least):
    """One architecture for each text that the preprocessor makes of this one, from ``least`` on.

    Which of those that read the same text is drawn by the text, so that all are met.
    """
    bounds = {int(n) // 10 for n in re.findall(r"__CUDA_ARCH__ (?:<|>=) (\d+)", text)}
    starts = sorted({least, *(b for b in bounds if b > least)})
    for start, end in pairwise([*starts, ARCHITECTURES[-1] + 1]):
        same = [a for a in ARCHITECTURES if start <= a < end]
        yield same[int(digest(text), 16) % len(same)]


@cache
def _includes():
    import cupy
    import nvidia

    inside = Path(cupy.__path__[0]) / "_core" / "include"
    toolkits = [p for root in nvidia.__path__ for p in Path(root).glob("cu*/include")]
    parts = [inside / "cupy" / "_cccl" / name for name in ("libcudacxx", "cub", "thrust")]
    return tuple(f"-I{path}" for path in [inside, *parts, *toolkits])


def log_of(text, options, architecture):
    """The log of NVRTC with CuPy's options; it begins with "error" if the text does not compile."""
    import cupy

    used = (
        *dict.fromkeys((*options, "-std=c++17")),
        "-ftz=true",
        f"-arch=sm_{architecture}",
        "--ptxas-options=-v",
    )
    version = ".".join(map(str, cupy.cuda.compiler._get_nvrtc_version()))
    path = folder("wheel") / digest(cupy.__version__, version, text, *used)
    return kept(path, lambda p: p.write_text(_compiled(text, used), "utf-8")).read_text("utf-8")


def _compiled(text, options):
    from cupy.cuda import compiler

    program = compiler._NVRTCProgram(text, "kernel.cu", method="cubin")
    try:
        program.compile((*_includes(), *options))
    except compiler.CompileException as problem:
        return f"error\n{problem}"
    return "compiled"
