"""Lab 07's ungraded cells on files say what to install, and show that workers copy what they only read."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from grading.demo.examples import example
from labkit.material import lab07_files
from tests.exercises.harness import answers_in, solution_of
from tests.lanes import require_package

PACKAGES = {"h5py": "HDF5", "lmdb": "LMDB", "webdataset": "WebDataset"}


def write_tokens(documents, vocab_size: int, path: str) -> None:
    np.concatenate([np.array(one, dtype=np.uint16) for one in documents]).tofile(path + ".bin")


def token_windows(path: str, vocab_size: int, window: int) -> np.ndarray:
    return np.memmap(path + ".bin", dtype=np.uint16).reshape(-1, window)


def no_shards(store, samples, per_shard: int) -> list[str]:
    raise AssertionError("asked for without the library that reads them")


def test_what_is_missing_is_said_with_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    lab07_files.compare_formats(write_tokens, token_windows)
    lab07_files.read_by_webdataset(no_shards)
    yours, *others = capsys.readouterr().out.splitlines()
    assert yours.startswith("your file") and yours.endswith("2.0 MiB on disk")
    for line, (package, name) in zip(others, PACKAGES.items(), strict=True):
        assert (
            line.split() == f"{name} is not installed here: `pip install {package}`, then run this cell again".split()
        )


@pytest.mark.parametrize("package", ["h5py", "lmdb"])
def test_an_installed_format_has_a_row(package: str, capsys) -> None:
    require_package(package)
    lab07_files.compare_formats(write_tokens, token_windows)
    assert any(line.startswith(PACKAGES[package]) and "µs" in line for line in capsys.readouterr().out.splitlines())


@pytest.mark.slow
def test_webdataset_reads_every_sample_of_the_shards(capsys) -> None:
    require_package("webdataset")
    answers = answers_in("07-tar-shards", solution_of("07-tar-shards"))
    lab07_files.read_by_webdataset(answers["write_shards"], n=30, per_shard=10)
    assert capsys.readouterr().out.startswith("WebDataset reads 30 samples from your 3 shards, first 0000")


@pytest.mark.slow
def test_webdataset_reads_shards_of_a_folder(capsys) -> None:
    require_package("webdataset")
    into_a_folder = answers_in("07-tar-shards", example("right", "07-tar-shards/streams_and_swaps").source)
    lab07_files.read_by_webdataset(into_a_folder["write_shards"], n=30, per_shard=10)
    assert capsys.readouterr().out.startswith("WebDataset reads 30 samples from your 3 shards, first 0000")


@pytest.mark.slow
@pytest.mark.skipif(not lab07_files.MAPS.is_file(), reason="Linux tells what of its memory a process shares")
def test_a_worker_comes_to_own_a_list_that_it_reads() -> None:
    """In a process of its own: collecting garbage makes a worker own what else the one that runs the tests holds."""
    code = "import json; from labkit.material import lab07_files as it; print(json.dumps(it.private_memory(200_000)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=True)
    grown = {name: mib[-1] - mib[0] for name, mib in json.loads(done.stdout.splitlines()[-1]).items()}
    # 200,000 texts of 62 bytes.
    assert grown["Python list"] > 8 and grown["NumPy array"] < 2
