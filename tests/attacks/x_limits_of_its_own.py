"""Sets limits so low that what runs after it fails: files, memory, processes, stack, CPU time."""

BEFORE = """
import resource
for name, most in (("RLIMIT_NOFILE", 3), ("RLIMIT_FSIZE", 0), ("RLIMIT_NPROC", 0), ("RLIMIT_STACK", 4096), ("RLIMIT_DATA", 1), ("RLIMIT_CPU", 1)):
    try:
        resource.setrlimit(getattr(resource, name), (most, most))
    except (OSError, ValueError) as error:
        print(name, error)
"""
