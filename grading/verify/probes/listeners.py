"""Does anything arrive from a submission? Sockets on the host that must stay silent while a class is graded.

TCP and UDP on every address, a Unix socket at a path that everybody may write to, and one with an abstract name.
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

MAX_DATAGRAM_BYTES = 65_536
TCP_READ_S = 0.2


@dataclass
class Listeners:
    """Listens from `with` to the end of the block. heard: (over what, the text that came), in order."""

    folder: Path
    heard: list[tuple[str, str]] = field(default_factory=list)

    def __enter__(self) -> Listeners:
        self._selector = selectors.DefaultSelector()
        path, abstract = self.folder / "listener", f"grading-verify-{secrets.token_hex(8)}"
        self._tcp = self._listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("", 0))
        self._udp = self._listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("", 0))
        self._listen("unix", socket.AF_UNIX, socket.SOCK_DGRAM, str(path))
        self._listen("abstract", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{abstract}")
        path.chmod(0o777)
        self._stop_read, self._stop_write = socket.socketpair()
        self._selector.register(self._stop_read, selectors.EVENT_READ, "stop")
        self.places = {
            "TCP": str(self._tcp.getsockname()[1]),
            "UDP": str(self._udp.getsockname()[1]),
            "SOCKET": str(path),
            "ABSTRACT": abstract,
        }
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_write.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._stop_write.close()
        self._selector.close()

    def _listen(self, name: str, family: int, kind: int, address: object) -> socket.socket:
        sock = socket.socket(family, kind)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen()
        self._selector.register(sock, selectors.EVENT_READ, name)
        return sock

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data == "stop":
                    return
                with contextlib.suppress(OSError):
                    self.heard.append((key.data, _received(key.fileobj, key.data)))


def _received(sock: socket.socket, name: str) -> str:
    if name != "tcp":
        return sock.recv(MAX_DATAGRAM_BYTES).decode(errors="replace")
    connection, _ = sock.accept()
    with connection:
        connection.settimeout(TCP_READ_S)
        with contextlib.suppress(OSError):
            return connection.recv(MAX_DATAGRAM_BYTES).decode(errors="replace")
    return ""
