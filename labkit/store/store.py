"""What an answer is handed of a store: four calls, checked before they go anywhere.

Like a shared file system or a bucket: it is there for every job, a name stands for bytes, and a write that is cut short
leaves half a file. Where the calls go is the subclass's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from labkit.store.books import Books

MAX_NAME = 200


class Store(ABC):
    """Files by name. Each read and each write opens its file once."""

    def write(self, name: str, data: bytes) -> None:
        """Make a file of these bytes, in place of one that has the name already.

        A job that is killed meanwhile leaves a part of them under that name.
        """
        self._write(_checked(name), _as_bytes(data))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of one that has it already. It is done whole or not at all.

        Raises FileNotFoundError where there is no file `old`.
        """
        self._rename(_checked(old), _checked(new))

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """`size` bytes of a file from byte `start` on, or all the rest; fewer where the file ends before.

        Raises FileNotFoundError where there is no such file.
        """
        for what, value in (("start", start), ("size", size)):
            if value is not None and (not hasattr(value, "__index__") or value < 0):
                raise ValueError(f"{what} is {value!r}: it must be a whole number of 0 or more")
        return self._read(_checked(name), int(start), None if size is None else int(size))

    def list(self, prefix: str = "") -> list[str]:
        """The names of all files that begin with `prefix`, sorted."""
        return self._list(_checked(prefix) if prefix else "")

    @abstractmethod
    def _write(self, name: str, data: bytes) -> None: ...

    @abstractmethod
    def _rename(self, old: str, new: str) -> None: ...

    @abstractmethod
    def _read(self, name: str, start: int, size: int | None) -> bytes: ...

    @abstractmethod
    def _list(self, prefix: str) -> list[str]: ...


class BookedStore(Store):
    """A store in this process, on books of its own."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def _write(self, name: str, data: bytes) -> None:
        self._books.write(name, data)

    def _rename(self, old: str, new: str) -> None:
        self._books.rename(old, new)

    def _read(self, name: str, start: int, size: int | None) -> bytes:
        return self._books.read(name, start, size)

    def _list(self, prefix: str) -> list[str]:
        return self._books.list(prefix)


def is_name(name: object) -> bool:
    """Whether a file can have this name."""
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()


def _checked(name: object) -> str:
    if not is_name(name):
        raise ValueError(f"{name!r} is no name for a file: take a text of 1 to {MAX_NAME} printable characters")
    return str(name)


def _as_bytes(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a store takes bytes, not {type(data).__name__}")
    return bytes(data)
