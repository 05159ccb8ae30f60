"""How a worker gives up what it does not need, from the inside: a small view of the files, namespaces, an own user,
Landlock, seccomp and limits. Linux only, without any program of another's; nothing here decides which of it to use.

Each step is a call to the kernel that cannot be taken back by the process that made it or by its children.
"""
