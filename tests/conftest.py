"""What every test shares: reproducible property tests, and a skip where there is no GPU."""

import importlib.util

import pytest
from hypothesis import settings

settings.register_profile("symad", deadline=None, derandomize=True)
settings.load_profile("symad")


def missing_for_gpu():
    """What a test marked ``gpu`` lacks on this machine, or an empty string."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed (extra gpu-cuda12 or gpu-cuda13)"
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA: {error}"
    return "" if count else "no CUDA device"


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = missing_for_gpu() if marked else ""
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))
