"""Sphinx: the pages of this folder, the notebooks, and the API reference from the docstrings."""

import sys
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # plain_docstrings

project = "symad"
author = "the symad authors"
copyright = author
version = release = installed("symad")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "plain_docstrings",
]
exclude_patterns = ["_build"]
default_role = "py:obj"  # `trace` in a docstring is a link where there is such a name

# Markdown: $…$ for mathematics, ::: for directives, anchors for headings.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# Notebooks run when the site is built and when they have changed; a failing cell fails the build.
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # the Args sections say the types in words
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("cupy", "cupyx", "torch", "jax") if find_spec(name) is None]
napoleon_google_docstring = True
napoleon_use_rtype = False

templates_path = ["_templates"]
html_theme = "furo"
html_title = "symad"
html_static_path = ["_static"]
html_css_files = ["symad.css"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ee", "color-brand-content": "#8ab8ee"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
