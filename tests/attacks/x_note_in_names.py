"""Leaves a process that listens under an abstract name and on a port, and looks for one that was left."""

TWICE = True
DAMAGE = ("processes",)
BEFORE = """
import os, socket, time
def unix():
    return socket.socket(socket.AF_UNIX), "\\0@TOKEN@"
def tcp():
    return socket.socket(), ("127.0.0.1", 40000 + @IPC_KEY@ % 256)
listening = []
for make in (unix, tcp):
    sock, address = make()
    try:
        sock.connect(address)
        print("!breach! somebody listens at", address)
    except OSError as error:
        print(error)
        sock, address = make()
        try:
            sock.bind(address)
            sock.listen()
            listening.append(sock)
        except OSError as error:
            print(error)
if os.fork() == 0:
    os.setsid()
    time.sleep(40)
    os._exit(0)
"""
