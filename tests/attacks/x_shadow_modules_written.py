"""Writes modules with the names of the grader's into its working directory and to the front of the import path."""

HARMLESS = True
BEFORE = """
import os, sys
os.makedirs("labkit/oracles", exist_ok=True)
for name in ("labkit/__init__", "labkit/oracles/__init__", "safetensors", "torch", "json", "struct", "grading"):
    with open(f"{name}.py", "w") as file:
        file.write("def check(*args): pass\\nraise SystemExit\\n")
sys.path[:0] = [os.getcwd(), ""]
os.environ["PYTHONPATH"] = os.getcwd()
sys.modules.pop("labkit.observe", None)
"""
