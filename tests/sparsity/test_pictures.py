"""Pictures of matrices and colorings show the entries and colors that the coloring has."""

import numpy as np
import pytest

from symad.sparsity import color
from tests.sparsity.cases import band, bordered, brusselator, five_point

pytest.importorskip("matplotlib")
from tests.example_files import module_beside

coloring_pictures = module_beside("derivatives/coloring_pictures.py")

KINDS = ["column", "row", "star", "acyclic", "bidirectional"]


def written(figure):
    """The texts in the cells of each panel."""
    return [[text.get_text() for text in axes.texts] for axes in figure.axes]


PICTURES = [coloring_pictures.spy, coloring_pictures.intersection_graph, coloring_pictures.compression]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", PICTURES)
def test_every_kind_has_every_picture(draw, kind, tmp_path):
    path = tmp_path / "picture.png"
    figure = draw(color(bordered(8, 1, 1), kind), path=path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert figure.axes


@pytest.mark.parametrize("kind", KINDS)
def test_entries_have_the_color_of_the_product_they_are_read_from(kind):
    coloring = color(five_point(4), kind)
    shades = coloring_pictures._entry_colors(coloring)
    palette = [tuple(shade) for shade in coloring_pictures.palette(coloring.num_colors)]
    read_from = [palette.index(tuple(shade)) for shade in shades]
    i, j = coloring.pattern.rows, coloring.pattern.indices
    for k, product in enumerate(read_from):
        if kind == "bidirectional":
            rows, columns = coloring.colors
            assert product in {rows[i[k]] - 1, coloring.row_colors + columns[j[k]] - 1}
        elif kind == "row":
            assert product == coloring.colors[i[k]]
        elif kind == "star":
            assert product in {coloring.colors[i[k]], coloring.colors[j[k]]}
        else:
            assert product == coloring.colors[j[k]]


def test_the_compressed_matrix_shows_its_numbers():
    figure = coloring_pictures.compression(color(coloring_pictures.FOUR_BY_FIVE, "column"))
    matrix, products, recovered = written(figure)
    assert matrix == recovered == list("12345678")
    assert products == ["1", "2", "4", "3", "5", "6", "7", "8"]


def test_the_example_shows_both_colorings_and_the_graph(tmp_path):
    figure = coloring_pictures.four_by_five(tmp_path / "example.svg")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["two column products", "two row products", "columns that share a row"]
    assert "<svg" in (tmp_path / "example.svg").read_text()


def test_palettes_are_distinct_and_large_matrices_are_drawn_as_dots():
    for count in (1, 5, 8, 9, 20):
        assert len({tuple(shade) for shade in coloring_pictures.palette(count)}) == count
    figure = coloring_pictures.spy(color(brusselator(8), "column"))
    (axes,) = figure.axes
    assert len(axes.collections[0].get_offsets()) == 768


def test_the_title_tells_the_count_and_the_bound():
    figure = coloring_pictures.spy(color(band(9, 1), "acyclic"))
    assert figure.axes[0].get_title() == "acyclic, 9×9, nnz=25\n2 colors, optimal; perfect elimination"
    assert np.array_equal(color(band(9, 1), "acyclic").colors % 2, np.arange(9) % 2)
