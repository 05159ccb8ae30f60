"""Sends SIGKILL to every process that it may."""

ROW = 17
DAMAGE = ("grader",)
BEFORE = """
@GUARD@
import os, signal
os.kill(-1, signal.SIGKILL)
"""
