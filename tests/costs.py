"""What tests cost: CPU seconds by folder, the dearest tests, and a failure where a budget is exceeded.

A pytest plugin. With ``--costs=FILE`` each process of a run counts the CPU seconds of its tests, children
included. The run ends with a table and writes ``FILE``: a JSON object with the number of tests of each
outcome, all CPU seconds, and those of each test (whole, and without fixtures). With ``--budget=SECONDS`` the
table names a run that takes one and a half times as much, collection included, and each test of over `MOST`
seconds. Twice as much as either fails the run: machines differ by less. Fixtures do not count: they prepare
what several tests use. Nor does what is loaded on first use, or garbage of earlier tests: what took longer
runs twice, and the shorter time counts.
"""

from __future__ import annotations

import contextlib
import gc
import json
import resource
from collections import defaultdict
from pathlib import Path

import pytest

MOST = 1.0
OUTCOMES = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


def cpu():
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def pytest_addoption(parser):
    group = parser.getgroup("costs")
    group.addoption("--costs", metavar="FILE", help="count CPU seconds, write them and the outcomes to FILE")
    group.addoption("--budget", metavar="SECONDS", type=float, help="CPU seconds of a run with --costs")


def pytest_configure(config):
    if config.getoption("--costs"):
        config.pluginmanager.register(Costs(config), "symad-costs")


class Costs:
    """The counter of one process; the process that a person started adds up."""

    def __init__(self, config):
        self.config = config
        self.began = cpu()
        self.tests = {}
        self.workers = 0.0

    def pytest_collection_finish(self, session):
        if getattr(session, "items", ()) and not self.config.getoption("numprocesses", None):
            gc.collect()
            gc.freeze()  # a collection of all that is loaded would count for the test that it meets

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid, location):
        self.began = cpu()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        yield
        if self.config.getoption("--budget") is None or cpu() - self.began <= MOST:
            return
        self.began = cpu()
        with contextlib.suppress(Exception):  # it has passed or failed already
            item.runtest()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        now = cpu()
        report.user_properties.append(("cpu", now - self.began))
        self.began = now

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["cpu"] = cpu()
        elif session.exitstatus == 0 and any(self.exceeded(2)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_testnodedown(self, node, error):
        self.workers += (getattr(node, "workeroutput", None) or {}).get("cpu", 0.0)

    def pytest_runtest_logreport(self, report):
        took = dict(report.user_properties).get("cpu", 0.0)
        whole, own = self.tests.get(report.nodeid, (0.0, 0.0))
        self.tests[report.nodeid] = (whole + took, own + took * (report.when == "call"))

    def whole(self):
        """CPU seconds of the run: of this process, and of its workers, which tell theirs."""
        return self.workers + resource.getrusage(resource.RUSAGE_SELF).ru_utime if self.workers else cpu()

    def exceeded(self, times):
        """What exceeds the budget, in words; ``times``: how many times as much may be taken."""
        budget = self.config.getoption("--budget")
        if budget is None:
            return
        if self.whole() > times * 1.5 * budget:
            yield f"the run took {self.whole():.0f} s of CPU, its budget is {budget:.0f} s"
        for name, (_, own) in self.tests.items():
            if own > times * MOST:
                yield f"{name} took {own:.2f} s of CPU; it may take {MOST:.0f} s"

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter):
        write, whole = terminalreporter.write_line, self.whole()
        terminalreporter.section("CPU seconds")
        folders = defaultdict(list)
        for name, (took, _) in self.tests.items():
            folders["/".join(Path(name.split("::")[0]).parts[:2])].append(took)
        for folder, took in sorted(folders.items(), key=lambda row: -sum(row[1])):
            write(f"{folder:<32} {len(took):6} tests {sum(took):8.1f} s")
        rest = whole - sum(took for took, _ in self.tests.values())
        write(f"{'collection, imports, processes':<45} {rest:8.1f} s")
        write(f"{'all':<32} {len(self.tests):6} tests {whole:8.1f} s")
        for name, (took, _) in sorted(self.tests.items(), key=lambda row: -row[1][0])[:10]:
            write(f"{took:8.2f} s  {name}")
        for words in self.exceeded(1):
            write(f"OVER BUDGET: {words}")
        outcomes = {name: len(terminalreporter.stats.get(name, [])) for name in OUTCOMES}
        told = {"outcomes": outcomes, "cpu": whole, "tests": self.tests}
        Path(self.config.getoption("--costs")).write_text(json.dumps(told), encoding="utf-8")
