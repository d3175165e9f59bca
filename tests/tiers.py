"""Which tests `make test` runs: a cover of every parametrized test, and nothing marked thorough or slow.

A pytest plugin. Three rules say which tests are thorough:

- a test or a file is marked ``thorough``;
- ``@pytest.mark.sample(k)`` on a parametrized test: k cases, evenly spaced, are in the first tier; with
  ``without=("word", ...)`` none of those whose names contain such a word;
- a test with several axes of parameters: the first tier has a cover, in which each value of each axis occurs.

So the first tier meets each op, backend and model, and the second tier all combinations. A file that is
thorough as a whole (``pytestmark = pytest.mark.thorough``) is not imported where thorough tests are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

WHOLE_FILE = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.thorough\b", re.MULTILINE)


def pytest_configure(config):
    config.addinivalue_line("markers", "sample(count, without=()): cases that `make test` runs")


def pytest_ignore_collect(collection_path, config):
    """Leaves out files that are thorough as a whole where the run leaves out what is thorough."""
    if collection_path.suffix != ".py" or "not thorough" not in config.option.markexpr:
        return None
    return True if WHOLE_FILE.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the cases that the first tier leaves out, before pytest selects by marks."""
    cases = defaultdict(list)
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is not None and not (hasattr(item, "callspec") and sample.args + tuple(sample.kwargs)):
            raise pytest.UsageError(f"{item.nodeid}: sample(count) is for tests with parameters")
        later = any(item.get_closest_marker(name) for name in ("thorough", "slow"))
        if hasattr(item, "callspec") and not later:
            cases[item.nodeid.split("[")[0]].append(item)
    for group in cases.values():
        kept = set(representative(group))
        for position, item in enumerate(group):
            if position not in kept:
                item.add_marker(pytest.mark.thorough)


def representative(group):
    """Positions of the cases of one parametrized test that the first tier runs."""
    sample = group[0].get_closest_marker("sample")
    if sample is None:
        return cover([axes(item) for item in group])
    words = sample.kwargs.get("without", ())
    quick = [k for k, item in enumerate(group) if not any(word in item.name for word in words)]
    count = sample.args[0] if sample.args else len(quick)
    return [quick[k] for k in spread(len(quick), count)]


def axes(item):
    """(axis, value) for each axis of parameters of a case: names of one ``parametrize`` are one axis."""
    values, found = dict(item.callspec.params), []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        names = tuple(name.strip() for name in names)
        found.append((names, tuple(id(values.pop(name)) for name in names)))
    return tuple(found) + tuple((name, id(value)) for name, value in values.items())


def spread(length, count):
    """At most `count` positions among `length`, evenly spaced, the first one included.

    >>> spread(10, 3), spread(2, 3)
    ([0, 3, 6], [0, 1])
    """
    return [k * length // count for k in range(count)] if count < length else list(range(length))


def cover(cases):
    """Positions of cases in which each value of each axis occurs: greedy, new values of most axes first.

    >>> cover([(("op", op), ("mode", mode)) for op in (0, 1) for mode in (0, 1)])
    [0, 3]
    >>> cover([(("op", 0),), (("op", 1),)])
    [0, 1]
    """
    taken, seen = [], set()
    for least in range(max(map(len, cases), default=0), 0, -1):
        for position, values in enumerate(cases):
            if len(set(values) - seen) >= least:
                taken.append(position)
                seen.update(values)
    return sorted(taken)
