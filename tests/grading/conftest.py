"""Lab 99 where labs are looked for, and one forking process for all tests of a module."""

from __future__ import annotations

import os

import pytest

from grading.isolation.probe import try_tier
from grading.supervisor import Sandbox
from tests.grading.fake_labs import copy_into, registered


@pytest.fixture(scope="module")
def lab99():
    with registered("99"):
        yield


@pytest.fixture(scope="module")
def sandbox(lab99):
    best = "kernel" if try_tier("kernel").works else "none"
    with Sandbox(os.environ.get("LABS_ISOLATION", best)) as server:
        copy_into(server.tree, "99")
        yield server
