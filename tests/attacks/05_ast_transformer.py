"""Has IPython strip asserts and calls of check from the syntax tree."""

ROW = 5
HARMLESS = True
BEFORE = """
import ast

class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    def visit_Expr(self, node):
        called = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "check"
        return ast.Pass() if called else node

get_ipython().ast_transformers.append(Strip())
"""
