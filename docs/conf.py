"""Sphinx: the Markdown pages of this folder, and the docstrings of the packages."""

from importlib.metadata import version as installed

project = "symad"
author = "the symad authors"
copyright = author
version = release = installed("symad")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "alabaster"

# Pages are reached by links, also to the pages at the top of the repository, which Sphinx does not
# see; the tests check that every link leads somewhere.
suppress_warnings = ["myst.xref_missing", "toc.not_included"]
