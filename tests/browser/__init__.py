"""A real browser against a real JupyterLab."""
