"""Replaces what the kernel and the shell do with a cell: nothing, successfully."""

ROW = 6
HARMLESS = True
BEFORE = """
shell = get_ipython()
async def nothing(*args, **kwargs):
    return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}
if getattr(shell, "kernel", None) is not None:
    type(shell.kernel).do_execute = nothing
class Fine:
    success, result, error_before_exec, error_in_exec = True, None, None, None
type(shell).run_cell = lambda *args, **kwargs: Fine()
"""
