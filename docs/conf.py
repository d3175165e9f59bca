"""Sphinx: the pages of this folder, the notebooks, and the API reference from the docstrings."""

import os
import sys
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # plain_docstrings, absent_libraries

from absent_libraries import install

project = "symad"
author = "the symad authors"
copyright = author
version = release = installed("symad")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
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
install(name for name in ("cupy", "cupyx", "torch", "jax") if find_spec(name) is None)
napoleon_google_docstring = True
napoleon_use_rtype = False

# Links into other libraries' documentation. The site is built without a network: an inventory is read from
# docs/inventories/NAME.inv where it lies, or from the library's site if SYMAD_INTERSPHINX=1.
LIBRARIES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sympy": "https://docs.sympy.org/latest",
    "torch": "https://pytorch.org/docs/stable",
    "jax": "https://docs.jax.dev/en/latest",
}
_local = {name: Path(__file__).parent / "inventories" / f"{name}.inv" for name in LIBRARIES}
_online = os.environ.get("SYMAD_INTERSPHINX") == "1"
intersphinx_mapping = {
    name: (url, str(_local[name]) if _local[name].exists() else None)
    for name, url in LIBRARIES.items()
    if _online or _local[name].exists()
}
intersphinx_timeout = 10

# `make docs-links` follows the links to other sites; links between pages are checked by every build.
linkcheck_anchors = False
linkcheck_timeout = 15
linkcheck_retries = 2

templates_path = ["_templates"]
html_theme = "furo"
pygments_dark_style = "github-dark"  # the default underlines names of modules
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


def forget_links_to_nowhere(app):
    """Built-in types have no source: viewcode would link a page of theirs that is not written."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for module in [module for module, entry in modules.items() if not entry]:
        del modules[module]
    return []


def setup(app):
    """The cheat sheet as a page to print and the steps of the lecture are made with the site."""
    from make_cheatsheet import write
    from make_lecture import write_steps

    app.connect("builder-inited", lambda app: write(Path(app.outdir) / "_static" / "cheatsheet.pdf"))
    app.connect("builder-inited", lambda app: write_steps(Path(app.outdir) / "_static" / "steps.html"))
    app.connect("html-collect-pages", forget_links_to_nowhere, priority=100)  # before viewcode
