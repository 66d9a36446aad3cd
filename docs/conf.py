"""Sphinx configuration. The pages that list things are printed from the package itself."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "bentpipe"
author = "the bentpipe authors"
project_copyright = "the bentpipe authors, Apache-2.0"
version = release = installed_version("bentpipe")

extensions = ["bentpipe_pages", "model_rounds"]
exclude_patterns = ["_build", "_ext"]
nitpicky = True
smartquotes = False
highlight_language = "text"

html_theme = "alabaster"
html_title = "bentpipe"
html_static_path = ["_static"]
html_css_files = ["bentpipe.css"]
html_show_sourcelink = False
html_theme_options = {
    "description": "The specification, the proof and the exam for transport protocols over "
    "satellite links.",
    "page_width": "1180px",
    "sidebar_width": "230px",
    "fixed_sidebar": True,
    "show_powered_by": False,
    "font_family": "'Source Sans 3', 'Helvetica Neue', Helvetica, Arial, sans-serif",
    "head_font_family": "'Source Sans 3', 'Helvetica Neue', Helvetica, Arial, sans-serif",
    "font_size": "16px",
    "code_font_size": "0.85em",
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
