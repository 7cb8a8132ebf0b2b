"""The site: the pages of this folder, and the references that the code writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import ensize

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import references  # noqa: E402

project = "ensize"
author = "The ensize developers"
copyright = author  # noqa: A001
release = version = ensize.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
smartquotes_action = "qe"  # quotes; two dashes are an option of a command
html_theme = "furo"
html_title = "ensize"
templates_path: list[str] = []
nitpicky = False
autodoc_typehints = "none"  # the docstrings say in words what a parameter is
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_use_rtype = False


def _inline(page: Any, node: Any) -> None:
    page.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(page: Any, node: Any) -> None:
    page.body.append(
        f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>'
    )
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Write the references before pages are read, and formulas as MathML."""
    app.connect("builder-inited", lambda _: references.write(HERE / "reference"))
    # MathML, so that no page needs a script from elsewhere.
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
