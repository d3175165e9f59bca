"""Every example runs to its end and prints its results."""

import importlib.util

import pytest

from tests.example_files import EXAMPLES, ROOT, SMALLER, needs
from tests.forked import run_script

# Long trainings to a result that they assert; in small, their models learn in tests/models/.
LONG = {
    "10_recurrent_forecast", "13_convolutions_and_state_space", "14_alignment", "15_climate_series",
    "16_byte_pairs", "19_low_rank", "20_vae_digits", "21_diffusion", "24_gan", "25_conditional_digits",
    "26_autoencoder", "27_kernels", "29_translation", "35_beyond_one_core",
}  # fmt: skip


# Run by `make test`; of the others it runs what they define and import, and the second tier runs them whole.
QUICK = {"01_chain_rule", "06_sparse_newton", "33_compiled", "40_attention_scores"}


def marked(path):
    marks = [pytest.mark.slow] * (path.stem in LONG) + [pytest.mark.thorough] * (path.stem not in QUICK)
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_example_runs(path, tmp_path):
    needs(path)
    draws = path.stem in LONG and '"--out"' in path.read_text("utf-8")
    out = ["--out", str(tmp_path / "pictures")] if draws else []
    status, output = run_script(path, [*SMALLER.get(path.stem, []), *out], folder=tmp_path)
    assert status == 0, f"\n{output}"
    assert output.strip()
    assert not draws or list((tmp_path / "pictures").glob("*.png"))


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES if path.stem not in QUICK])
def test_what_an_example_defines_and_imports_is_there(name):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    needs(path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert callable(module.main)


def test_the_index_names_every_folder_and_number_once():
    """examples/README.md: one row a folder, and the numbers of its examples, in order."""
    text = (ROOT / "examples" / "README.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "/` |" in line]
    found = {}
    for path in EXAMPLES:
        found.setdefault(f"`{path.parent.name}/`", []).append(path.name[:2])
    assert {row[0]: row[2].split() for row in rows} == found
    assert len({path.name[:2] for path in EXAMPLES}) == len(EXAMPLES)


def test_the_tables_name_examples():
    assert LONG | QUICK | SMALLER.keys() <= {path.stem for path in EXAMPLES}
