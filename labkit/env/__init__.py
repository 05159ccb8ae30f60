"""The environment page: what this machine has, what the labs want, and the fix for every line that is red.

`environment()` in a notebook shows a table, `python -m labkit.env` prints the same. Nothing is installed, changed
or sent anywhere, and nothing here measures speed.
"""

from labkit.env.finding import EnvFinding
from labkit.env.machine import memory_bytes
from labkit.env.page import Page, environment
from labkit.env.survey import look

__all__ = ["EnvFinding", "Page", "environment", "look", "memory_bytes"]
