"""Hooks into everything that Python offers: tracing, profiling, audit, imports, exceptions, allocation."""

HARMLESS = True
WITHIN_S = 60.0
BEFORE = """
import builtins, gc, sys, threading
sys.settrace(lambda *args: None)
sys.setprofile(lambda *args: None)
threading.settrace(lambda *args: None)
sys.addaudithook(lambda *args: None)
sys.meta_path.insert(0, type("Finder", (), {"find_spec": staticmethod(lambda *args: None)}))
sys.excepthook = sys.unraisablehook = lambda *args: None
gc.callbacks.append(lambda *args: None)
builtins.isinstance = lambda *args: True
"""
