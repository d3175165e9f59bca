"""Plugins of the tests; the bridges are collected where their libraries are installed."""

from importlib.util import find_spec

pytest_plugins = ["tests.tiers", "tests.costs"]
collect_ignore = [f"symad/{name}" for name in ("torch", "jax") if find_spec(name) is None]
# their examples need a device, or the stand-in of tests/test_docstrings.py
collect_ignore += [f"symad/gpu/{name}.py" for name in ("lower", "recording", "training/step")]
