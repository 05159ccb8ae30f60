"""Replaces the functions by which the worker forks, limits itself and talks."""

BEFORE = """
import os, resource, socket, json, struct
os.fork = lambda: 0
os.waitpid = lambda *args: (0, 0)
os._exit = lambda code: None
resource.setrlimit = lambda *args: None
socket.socket.sendall = lambda self, data: None
json.dumps = lambda *args, **kwargs: '{"kind": "end", "parts": {"d": {}}}'
os.listdir = lambda path=".": ["1"]
"""
OUTCOMES = ("failed", "limit", "suspected")
WITHIN_S = 60.0
