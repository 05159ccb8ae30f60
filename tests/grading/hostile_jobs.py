"""Jobs on a store that remember by other ways than the store, look for what is kept from them, or lie to its port."""

REMEMBERED = {
    "a dictionary": "kept = {}\ndef keep(v): kept['v'] = v\ndef have(): return kept.get('v')",
    "a module": "import math\ndef keep(v): math.kept = v\ndef have(): return getattr(math, 'kept', None)",
    "a file in /tmp": """
import os
def keep(v): open('/tmp/kept', 'w').write(json.dumps(v))
def have(): return json.load(open('/tmp/kept')) if os.path.exists('/tmp/kept') else None
""",
    "a file in /dev/shm": """
import os
def keep(v): open('/dev/shm/kept', 'w').write(json.dumps(v))
def have(): return json.load(open('/dev/shm/kept')) if os.path.exists('/dev/shm/kept') else None
""",
    "the home folder": """
import os
def keep(v): open(os.path.expanduser('~/kept'), 'w').write(json.dumps(v))
def have():
    path = os.path.expanduser('~/kept')
    return json.load(open(path)) if os.path.exists(path) else None
""",
    "a process that stays": """
import os, socket
def ask(data):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind('')
        sock.settimeout(0.3)
        sock.connect('\\0kept96')
        sock.send(data)
        return sock.recv(65536)
def keep(v):
    try:
        ask(json.dumps(v).encode())
    except OSError:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.bind('\\0kept96')
        if not os.fork():
            data = json.dumps(v).encode()
            while True:
                new, sender = server.recvfrom(65536)
                data = new or data
                server.sendto(data, sender)
def have():
    try:
        return json.loads(ask(b''))
    except OSError:
        return None
""",
}
REMEMBERS = """
def total(store, n):
    done, total = have() or (0, 0)
    for index in range(done, n):
        total += sum(store.read(f"data/{index}"))
        keep([index + 1, total])
        store.write("state", b"")
    if done: keep([0, 0])
    return total
"""
LOOKS = """
import gc, sys
def total(store, n):
    found = []
    frame = sys._getframe()
    while frame:
        found += [name for name in ("files", "kills", "tree") if name in frame.f_locals and frame.f_locals[name]]
        frame = frame.f_back
    for value in gc.get_objects():
        if isinstance(value, dict) and ("kills" in value or "data/0" in value): found.append(sorted(map(str, value)))
        if isinstance(value, bytes | bytearray) and len(value) == 1000: found.append("bytes of a file")
        if type(value).__name__ in ("Books", "Kill") and not isinstance(value, type): found.append(repr(value))
    raise ValueError(repr(found))
"""
FORGES = {
    "a result of its own": """
    channel.send("observed", {"got": {"out": 0}, "measured": {"read_bytes": 0.0}, "trouble": None})
""",
    "the store's own frame": 'channel.send("stored", {"value": None})',
    "a name that is none": 'channel.send("read", {"name": 3, "start": 0, "size": None})',
    "a place that is none": 'channel.send("read", {"name": "data/0", "start": -1, "size": None})',
    "bytes that are none": 'channel.send("write", {"name": "a", "data": torch.zeros(3)})',
    "a prefix that is none": 'channel.send("list", {"prefix": ["data/"]})',
    "no parts": 'channel.send("rename", {})',
    "an end": "import os; os._exit(0)",
}
