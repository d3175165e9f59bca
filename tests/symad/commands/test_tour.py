"""The tour's files: the record of a run, the page, and runs that continue an interrupted one."""

import json
import sys
from html.parser import HTMLParser

import pytest

from symad.cli import main
from symad.cli.console import OK, REFUTED, USAGE
from symad.cli.tour import command
from symad.cli.tour.stage import Finding, Skip, Stage, TourModel


class Tags(HTMLParser):
    """The tags of a page and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def stages(monkeypatch):
    """Three stages: one that goes well, one that fails once, one that is skipped; and how often each ran."""
    import sympy

    x = sympy.Symbol("x", real=True)
    runs = []

    def well(made):
        runs.append("well")
        (made.out / "well done.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
        return [Finding("1 < 2 & <script>alert(1)</script>")]

    def once(made):
        runs.append("once")
        return [Finding("works at the second try", runs.count("once") > 1)]

    def never(made):
        raise Skip("no data")

    made = [
        Stage(name, f"about {name}", lambda use=use: TourModel(x**2, (1.5,), use=use), quick=name == "well")
        for name, use in (("well", well), ("once", once), ("never", never))
    ]
    monkeypatch.setattr(command, "all_stages", lambda: {stage.name: stage for stage in made})
    return runs


def test_a_tour_goes_on_where_it_was_stopped(stages, tmp_path, capsys):
    assert main(["tour", "--out", str(tmp_path)]) == REFUTED
    kept = json.loads((tmp_path / "tour.json").read_text("utf-8"))
    assert [row["stage"] for row in kept["stages"]] == ["well", "once", "never"]
    assert main(["tour", "--out", str(tmp_path), "--resume"]) == OK
    assert stages == ["well", "once", "once"]
    assert "3 stages" in capsys.readouterr().out


def test_the_page_shows_everything_and_runs_nothing(stages, tmp_path):
    main(["tour", "--out", str(tmp_path), "--html"])
    page = Tags()
    page.feed((tmp_path / "index.html").read_text("utf-8"))
    assert {"script"}.isdisjoint(tag for tag, _ in page.tags)
    assert "1 < 2 & <script>alert(1)</script>" in page.text and "skipped: no data" in page.text
    assert "✗ works at the second try" in page.text and "FAILED" in page.text
    pictures = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert "well%20done.svg" in pictures and "well.svg" in pictures


def test_the_quick_tour_runs_the_quick_stages(stages, tmp_path, capsys):
    assert main(["tour", "--quick", "--out", str(tmp_path)]) == OK
    assert stages == ["well"] and "1 stage " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "no tour that can be resumed"), ("{", "no tour"), ('{"format": "symad tour"}', "no tour"),
     ('{"format": "symad tour", "symad": "0.0", "stages": []}', "is of symad 0.0")],
)  # fmt: skip
def test_a_file_that_is_no_tour_is_refused(stages, tmp_path, capsys, text, words):
    (tmp_path / "tour.json").write_text(text)
    assert main(["tour", "--out", str(tmp_path), "--resume"]) == USAGE
    assert words in capsys.readouterr().err and stages == []


def test_resuming_needs_a_folder(stages, capsys):
    assert main(["tour", "--resume"]) == USAGE
    assert "--out" in capsys.readouterr().err


@pytest.mark.thorough
def test_without_matplotlib_stages_draw_nothing_and_go_well(tmp_path, monkeypatch):
    monkeypatch.setattr("symad.cli.tour.stage.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["tour", "arm", "--out", str(tmp_path)]) == OK
    assert (tmp_path / "arm.svg").exists() and not (tmp_path / "arm reaching.svg").exists()


def test_a_tour_says_how_long_it_takes_and_which_stage_runs(stages, tmp_path, capsys, monkeypatch):
    """Before a stage ends its name is printed, also where nobody sees a moving bar."""
    seen = []
    own = command.run_stage
    monkeypatch.setattr(
        command, "run_stage", lambda *given: seen.append(capsys.readouterr().out) or own(*given)
    )
    assert main(["tour", "--out", str(tmp_path)]) == REFUTED
    assert seen[0] == f"3 stages, about {command.WHOLE}\n1 of 3  well: "
    assert seen[1].startswith("ok, ") and seen[1].endswith(" s\n2 of 3  once: ")
    seen.clear()
    assert main(["tour", "--quick", "--out", str(tmp_path)]) == OK
    assert seen[0].endswith(f"1 stage, about {command.QUICK}\n1 of 1  well: ")
    seen.clear()
    assert main(["tour", "well", "--out", str(tmp_path)]) == OK
    assert "about " not in seen[0].splitlines()[-1]
