"""Sends to Unix sockets of the host, by path and by abstract name."""

ROW = 19
HARMLESS = True
DAMAGE = ("packets",)
BEFORE = """
import socket
for address in ("@SOCKET@", "\\0@ABSTRACT@", "/run/docker.sock", "/var/run/dbus/system_bus_socket"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(b"@TOKEN@", address)
        except OSError as error:
            print(error)
        else:
            print("!breach! sent to", repr(address))
"""
