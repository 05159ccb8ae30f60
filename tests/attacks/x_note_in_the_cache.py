"""Has the kernel drop pages of files that all read, and looks which of them it has in its cache."""

TWICE = True
STOCK = False
BEFORE = """
import ctypes, os, torch
libc = ctypes.CDLL(None, use_errno=True)
path = torch.__path__[0] + "/lib/libtorch_cpu.so"
file = os.open(path, os.O_RDONLY)
data = ctypes.create_string_buffer(4096)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(data), 4096)
watch = libc.inotify_init1(0)
TRIES = {
    "drop pages": lambda: libc.posix_fadvise(file, ctypes.c_long(0), ctypes.c_long(4096), 4) == 0,
    "fetch pages": lambda: libc.readahead(file, ctypes.c_long(0), ctypes.c_size_t(4096)) == 0,
    "read without waiting": lambda: libc.syscall(327, file, vector, ctypes.c_long(1), ctypes.c_long(0), ctypes.c_long(0), 8) != -1,
    "watch readers": lambda: watch >= 0 and libc.inotify_add_watch(watch, path.encode(), 1) >= 0,
    "lock": lambda: libc.flock(file, 5) == 0,
    "lease": lambda: libc.fcntl(file, 1024, 0) == 0,
    "count processes": lambda: libc.sysinfo(data) == 0,
}
for name, attempt in TRIES.items():
    if attempt():
        print("!breach! could", name)
"""
