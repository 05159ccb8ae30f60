"""Opens what the machine is made of: memory, disks, the kernel's messages, terminals."""

STOCK = False
BEFORE = """
@GUARD@
import glob, os
for path in sorted({*glob.glob("/dev/*"), "/dev/mem", "/dev/kmem", "/dev/vda", "/dev/sda", "/dev/kmsg", "/dev/tty", "/dev/fuse", "/dev/kvm",
                    "/dev/net/tun", "/dev/ptmx", "/proc/kcore", "/proc/kallsyms", "/sys/kernel/debug", "/dev/loop-control", "/dev/userfaultfd"}):
    if os.path.basename(path) in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "fd", "shm", "mqueue", "tty", "core", "console", "kallsyms", "log", "initctl", "char"):
        continue
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        continue
    if not os.path.isdir(path):
        print("!breach! opened", path)
    os.close(descriptor)
"""
