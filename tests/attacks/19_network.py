"""Connects, sends and asks for names: TCP, UDP, DNS, IPv6, raw packets."""

ROW = 19
HARMLESS = True
DAMAGE = ("packets",)
BEFORE = """
import socket
def tcp(host):
    with socket.create_connection((host, @TCP@), timeout=1) as sock:
        sock.sendall(b"@TOKEN@")
def udp(host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"@TOKEN@", (host, @UDP@))
def raw(host):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as sock:
        sock.sendto(b"@TOKEN@", (host, 0))
def packet(host):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300).close()
    print("!breach! opened a packet socket")
for deed in (tcp, udp, raw, packet):
    for host in ("127.0.0.1", "0.0.0.0", "localhost", "255.255.255.255"):
        try:
            deed(host)
        except OSError as error:
            print(deed.__name__, host, error)
"""
