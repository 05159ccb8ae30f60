"""What an exercise's inputs say of its store: the files that lie in it, and where jobs are killed. No job is told."""

from __future__ import annotations

from labkit.spec import Tree
from labkit.store.books import Books, Kill

OF_THE_STORE = ("files", "kills")


def books_of(tree: Tree) -> Books:
    """Fresh books of a store with the files of these inputs, whose jobs are killed where they say."""
    files = {name: data.numpy().tobytes() for name, data in tree.get("files", {}).items()}
    return Books(files, [Kill(**kill) for kill in tree.get("kills", [])])


def part_of_job(tree: Tree) -> Tree:
    """What a job is given of the inputs."""
    return {name: value for name, value in tree.items() if name not in OF_THE_STORE}
