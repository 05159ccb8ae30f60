"""Leaves programs running by the shell's own means."""

ROW = 23
DAMAGE = ("processes",)
BEFORE = """
import subprocess
subprocess.Popen(["nohup", "setsid", "sleep", "61"], start_new_session=True)
!(setsid sleep 62 >/dev/null 2>&1 &)
"""
