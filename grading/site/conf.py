"""Sphinx's settings for the course's pages. A copy of this file lies beside what it makes pages from."""

project = "Efficient training labs"
author = "the authors of Efficient training labs"
language = "en"
html_title = project

extensions = ["myst_nb", "sphinx_design", "grading.site.mathml"]
exclude_patterns = ["_static", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
# What JupyterLab shows as it stands: % and +++ at the beginning of a line, {braces}, (names)= of places.
myst_disable_syntax = ["myst_line_comment", "myst_block_break", "myst_role", "myst_target"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_merge_streams = True
# Neither the script that shows widgets nor any other comes from a network.
nb_ipywidgets_js = {}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": [], "exercises": [], "api": [], "search": []}
