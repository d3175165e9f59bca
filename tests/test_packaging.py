"""The files listed in pyproject.toml exist, and the built packages are complete."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from datetime import date, timedelta
from fnmatch import fnmatch
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pytest brings tomli there
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS = {"symad": "symad", "symad.numeric": "numeric", "symad.gpu": "gpu"}
LINKS = {"symad/numeric": "../numeric", "symad/gpu": "../gpu"}


def files_of(folder):
    """Paths below a package folder, relative to it; the links and caches left out."""
    for path in sorted((ROOT / folder).rglob("*")):
        linked = path.relative_to(ROOT).as_posix().startswith(tuple(LINKS))
        if path.is_file() and not linked and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT / folder)


def shipped_files():
    """Every file of the three folders but their notes, under the name it has when installed."""
    return {
        (Path(*package.split(".")) / path).as_posix()
        for package, folder in FOLDERS.items()
        for path in files_of(folder)
        if path.suffix != ".md"
    } | {f"{module}.py" for module in SETUPTOOLS["py-modules"]}


def test_every_package_is_listed():
    on_disk = {
        ".".join((package, *path.parent.parts))
        for package, folder in FOLDERS.items()
        for path in files_of(folder)
        if path.name == "__init__.py"
    }
    assert set(SETUPTOOLS["packages"]) == on_disk
    assert SETUPTOOLS["package-dir"] == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS.values())
def test_every_folder_of_modules_is_a_package(folder):
    folders = {path.parent for path in files_of(folder) if path.suffix == ".py"}
    assert [str(f) for f in folders if not (ROOT / folder / f / "__init__.py").exists()] == []


@pytest.mark.parametrize("package", FOLDERS)
def test_every_data_file_is_shipped(package):
    patterns = SETUPTOOLS["package-data"][package]
    files = files_of(FOLDERS[package])
    data = [path.as_posix() for path in files if path.suffix not in {".py", ".md"}]
    assert "py.typed" in data
    assert [path for path in data if not any(fnmatch(path, p) for p in patterns)] == []


@pytest.mark.parametrize("link", LINKS)
def test_the_links_are_relative(link):
    path = ROOT / link
    if not path.is_symlink():
        pytest.skip("this checkout has no symbolic links")
    assert path.readlink().as_posix() == LINKS[link]


def test_the_makefile_installs_extras_that_exist():
    lines = re.findall(r"^EXTRAS_\w+ := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    wanted = {name for line in lines for name in line.split(",")}
    assert wanted
    assert wanted <= set(PROJECT["project"]["optional-dependencies"])


def run(*command, cwd, **env):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_built_from_the_sdist_is_complete_and_works(tmp_path):
    ignored = shutil.ignore_patterns(".?*", "__pycache__", "build", "dist", "*.egg-info", "_build")
    shutil.copytree(ROOT, tmp_path / "checkout", symlinks=True, ignore=ignored)
    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", cwd=tmp_path / "checkout")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")

    with tarfile.open(sdist) as archive:
        carried = {Path(*Path(name).parts[1:]).as_posix() for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile"} <= carried
    tests = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("*.py")}
    assert tests <= carried

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == shipped_files()
    assert any(name.endswith("licenses/LICENSE") for name in names)

    site = tmp_path / "site"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel,
        cwd=tmp_path)  # fmt: skip
    code = "import symad.numeric, symad.gpu, pytest_symad; print(symad.__file__, symad.numeric.__file__)"
    found = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(site)).split()
    assert all(Path(path).is_relative_to(site) for path in found)
    assert (site / "bin" / "symad").exists() or (site / "Scripts" / "symad.exe").exists()


@pytest.mark.slow
def test_a_checkout_named_symad_does_not_hide_the_package(tmp_path):
    """Beside the user's script, the folder of the checkout is an empty package if nothing better is found."""
    ignored = shutil.ignore_patterns(".?*", "__pycache__", "build", "dist", "*.egg-info", "_build")
    shutil.copytree(ROOT, tmp_path / "symad", symlinks=True, ignore=ignored)
    (tmp_path / "model.py").write_text("import symad.numeric, symad.gpu\nprint(symad.__file__)\n")
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", "./symad", cwd=tmp_path)
    dependencies = str(Path(pytest.__file__).parents[1])  # this environment's, whose .pth files are not read
    for command in (["model.py"], ["-m", "model"], ["-c", "import model"]):
        found = run(python, *command, cwd=tmp_path, PYTHONPATH=dependencies).strip()
        assert Path(found) == tmp_path / "symad" / "symad" / "__init__.py"


def test_an_editable_install_is_a_path():
    """The finder that setuptools installs otherwise comes after the current folder."""
    assert PROJECT["tool"]["distutils"]["editable_wheel"] == {"mode": "compat"}


def test_the_top_level_holds_the_project_and_nothing_that_was_left_behind():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no checkout")
    found = {name.split("/")[0] for name in run("git", "ls-files", cwd=ROOT).splitlines()}
    assert found == {
        ".ci", ".github", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
        "MANIFEST.in", "Makefile", "README.md", "benchmarks", "conftest.py", "docs", "examples", "gpu",
        "numeric", "pyproject.toml", "pytest_symad.py", "symad", "symad_command.py", "tests",
    }  # fmt: skip


def test_all_files_tell_one_version():
    version = PROJECT["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == version
    assert headings[:2] == ["Unreleased", version]


def test_the_release_has_one_date():
    """That of the changelog's heading of this version; it is a day, and not one to come."""
    version = re.escape(PROJECT["project"]["version"])
    heading = rf"^## \[{version}\] - (\S+)$"
    day = re.search(heading, (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[1]
    cited = re.search(r"^date-released: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)[1]
    assert cited == day
    assert date(2026, 1, 1) < date.fromisoformat(day) <= date.today() + timedelta(days=1)  # of any time zone


def test_the_changelog_is_short():
    """A version says in a page what a user gets, not how it came."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(text[text.index("## [0.1.0]") :].splitlines()) <= 80


def test_a_release_is_tried_on_every_python_that_is_named():
    """The workflow installs it on those of the classifiers, and on newer ones."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    tried = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1])
    named = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"]]
    assert {c for c in named if re.fullmatch(r"3\.\d+", c)} <= {*tried}


def test_the_page_on_installing_names_every_extra():
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    told = {name for listed in re.findall(r"symad\[([\w,-]+)\]", page) for name in listed.split(",")}
    assert told == PROJECT["project"]["optional-dependencies"].keys()
