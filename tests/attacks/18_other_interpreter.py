"""Starts a Python that knows nothing of any patch, and looks from there."""

ROW = 18
DAMAGE = ("files",)
BEFORE = """
import subprocess, sys
program = "import os; print(os.environ.get('SECRET')); print(open('@HOME@/.ssh/id_ed25519').read())"
print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=10))
"""
