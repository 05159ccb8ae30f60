"""System calls that no submission needs and that have let others out of their cages."""

STOCK = False
BEFORE = """
@GUARD@
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(4096)
CALLS = {
    "io_uring_setup": (425, 8, buffer), "userfaultfd": (323, 0), "bpf": (321, 0, buffer, 64), "perf_event_open": (298, buffer, 0, -1, -1, 0),
    "unshare(user)": (272, 0x10000000), "unshare(mount)": (272, 0x20000), "unshare(net)": (272, 0x40000000),
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, None), "umount2": (166, b"/proc", 2), "pivot_root": (155, b"/", b"/"),
    "open_tree": (428, -100, b"/", 1), "fsopen": (430, b"tmpfs", 0), "move_mount": (429, -1, b"", -1, b"", 0),
    "setns": (308, -1, 0), "chroot": (161, b"/tmp"), "kexec_load": (246, 0, 0, None, 0), "init_module": (175, buffer, 16, b""),
    "finit_module": (313, -1, b"", 0), "reboot(cad off)": (169, 0xfee1dead, 672274793, 0, 0), "swapon": (167, b"/none", 0),
    "acct": (163, None), "quotactl": (179, 0, None, 0, None), "syslog": (103, 3, buffer, 4096), "iopl": (172, 3), "ioperm": (173, 0x70, 1, 1),
    "add_key": (248, b"user", b"@TOKEN@", b"x", 1, -2), "keyctl": (250, 0, -3, 1), "request_key": (249, b"user", b"x", None, -2),
    "name_to_handle_at": (303, -100, b"/", buffer, buffer, 0), "open_by_handle_at": (304, -100, buffer, 0),
    "process_vm_readv": (310, 1, None, 0, None, 0, 0), "ptrace(traceme)": (101, 0, 0, 0, 0), "personality(no randomization)": (135, 0x0040000),
    "mknod(block)": (133, b"/tmp/@TOKEN@-node", 0o60666, 0xfe00), "clone3(user)": (435, buffer, 88), "settimeofday": (164, None, None),
    "sethostname": (170, b"evil", 4), "vhangup": (153,), "fanotify_init": (300, 0, 0), "memfd_secret": (447, 0), "lookup_dcookie": (212, 0, buffer, 10),
    "move_pages": (279, 1, 0, None, None, None, 0), "migrate_pages": (256, 1, 0, None, None), "mbind": (237, None, 0, 0, None, 0, 0),
}
ALLOWED = {"ptrace(traceme)", "process_vm_readv", "personality(no randomization)", "mbind", "move_pages", "request_key", "setns", "move_mount",
           "memfd_secret", "settimeofday", "name_to_handle_at"}
for name, (number, *args) in CALLS.items():
    ctypes.set_errno(0)
    done = libc.syscall(number, *args)
    error = ctypes.get_errno()
    print(name, done, os.strerror(error) if done < 0 else "")
    if done >= 0 and name not in ALLOWED:
        print("!breach! the kernel did", name)
"""
