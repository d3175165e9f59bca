"""Fixtures of all tests: reproducible random numbers, and a skip of GPU tests on machines without a GPU."""

import importlib.util
import os
from random import Random
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("symad", deadline=None, derandomize=True)
settings.load_profile("symad")


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """Resets the generator of a test's module: the test draws the same numbers whatever ran before."""
    for name in ("rng", "RNG"):
        generator = getattr(getattr(request, "module", None), name, None)
        if isinstance(generator, np.random.Generator):
            seed = crc32(request.node.name.encode())
            generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state


DRAWN = SimpleNamespace(randbits=None)
"""Seeds of certificates that are given none, the same in each run of a test, so that a failure comes again.

With ``SYMAD_FRESH_SEEDS=1`` in the environment they are drawn as users' are.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Fixtures of a file draw the same seeds whichever of its tests comes first."""
    from symad.verification import decide, outside

    DRAWN.randbits = Random(crc32(item.path.name.encode())).getrandbits
    if not os.environ.get("SYMAD_FRESH_SEEDS"):
        decide.secrets = outside.secrets = DRAWN


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    DRAWN.randbits = Random(crc32(item.nodeid.encode())).getrandbits


@pytest.fixture(autouse=True, scope="session")
def proved_is_replayed():
    """Of every certificate that a test has made: what is `proved` is replayed by the checker."""
    from symad.verification import decide as deciding

    made = deciding.with_proofs

    def checked(*args, **kwargs):
        certificate = made(*args, **kwargs)
        assert all(e.checked for e in certificate.entries_of("proved")), certificate.title
        return certificate

    deciding.with_proofs = checked
    yield
    deciding.with_proofs = made


@pytest.fixture(autouse=True, scope="session")
def compilers_are_not_reported():
    """What tests print does not depend on how busy the machine is."""
    from symad.numeric.compiler import c_compiler

    before, c_compiler.QUIET_SECONDS = c_compiler.QUIET_SECONDS, 1e5
    yield
    c_compiler.QUIET_SECONDS = before


def missing_for_gpu():
    """The reason why tests marked ``gpu`` cannot run on this machine; empty if they can."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed (extra gpu-cuda12 or gpu-cuda13)"
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA: {error}"
    return "" if count else "no CUDA device"


def pytest_collection_modifyitems(items):
    # the processes of pytest-xdist must collect the same names
    addresses = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addresses:
        raise pytest.UsageError(f"the name of a test contains an address; give it ids: {addresses[0]}")
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = missing_for_gpu() if marked else ""
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))
