"""Find a call that an exercise forbids, in the answer's text and in the student's own functions that it uses.

Names are followed through imports and aliases, so `from torch import softmax as s` is found, and so is
`F = torch.nn.functional`. Only what the answer reaches counts, not a cell that compares with it. This reads text, also
of what never runs; `labkit.forbidden_calls` sees what is called under a name that the text does not show.
"""

from __future__ import annotations

import ast
import copy
import inspect
import symtable
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from labkit.shell import current_shell
from labkit.spec import Trouble

METHOD = "torch.Tensor."
LOOK_UP = frozenset(
    {"getattr", "eval", "exec", "__import__", "importlib", "globals", "vars", "attrgetter", "methodcaller", "pickle"}
)
LOOK_UP_IN = frozenset({"__dict__", "__getattribute__", "__globals__", "__subclasses__", "attrgetter", "methodcaller"})
"""By these, and by these attributes, a name can be found that the text does not show."""
WATCHED_BY = frozenset({"setprofile", "settrace", "monitoring"})
"""By these an answer sees, or ends, that its calls are watched."""


@dataclass(frozen=True)
class Forbidden:
    """The forbidden name as declared, and the student's line that uses it."""

    name: str
    line: str


def find_forbidden(cells: Sequence[str], roots: Sequence[str], forbids: Sequence[str]) -> Forbidden | None:
    """The first forbidden use reachable from the definitions of `roots` in the program that the cells make."""
    # What the student's own classes call so is no method of a tensor.
    if any(name.startswith(METHOD) for name in forbids):
        own = {METHOD + name for cell in cells for name in _attributes_made(_parse(cell))}
        forbids = [name for name in forbids if name not in own]
    if not forbids:
        return None
    for cell, definition, known in _reached(cells, roots, forbids):
        for node in ast.walk(definition):
            if isinstance(node, ast.Name | ast.Attribute) and (found := _forbidden_name(node, known, forbids)):
                return Forbidden(found, _line(cell, node))
    return None


def find_disguise(cells: Sequence[str], roots: Sequence[str], forbids: Sequence[str]) -> Forbidden | None:
    """The first place reachable from `roots` that may call what is forbidden under a name which the text does not show.

    It may as well be honest: a reason to look at the answer, and no more. None where nothing is forbidden.
    """
    last_parts = {name.rpartition(".")[2] for name in forbids}
    for cell, definition, known in _reached(cells, roots, forbids) if forbids else ():
        shown = set()
        for node in ast.walk(definition):
            if isinstance(node, ast.Call) and _getattr_text(node) not in (None, *last_parts):
                # A call comes before what it calls.
                shown.add(node.func)
            elif node not in shown and (name := _looks_up(node, known)):
                return Forbidden(name, _line(cell, node))
    return None


def refusal(forbidden: Forbidden) -> Trouble:
    """The trouble of an answer that calls what the exercise is about."""
    text = f"`{forbidden.name}` does the whole job: this exercise is about writing it yourself"
    return Trouble("forbidden", text, forbidden.line)


def _looks_up(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """What this part of a text finds names by, if it does."""
    if _dotted(node, known) == "sys.modules":
        return "sys.modules"
    if isinstance(node, ast.Name):
        parts = known.get(node.id, node.id).split(".")
        return next((part for part in (parts[0], parts[-1]) if part in LOOK_UP | WATCHED_BY), None)
    return node.attr if isinstance(node, ast.Attribute) and node.attr in LOOK_UP_IN | WATCHED_BY else None


def _getattr_text(node: ast.Call) -> str | None:
    """What `getattr(x, "dtype", None)` says that it looks up; None for any other call."""
    is_plain = isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1
    return node.args[1].value if is_plain and isinstance(node.args[1], ast.Constant) else None


def _line(cell: str, node: ast.expr) -> str:
    return f"line {node.lineno}: {cell.splitlines()[node.lineno - 1].strip()[:80]}"


def _reached(
    cells: Sequence[str], roots: Sequence[str], forbids: Sequence[str]
) -> Iterator[tuple[str, ast.AST, dict[str, str]]]:
    """The definitions that those of `roots` use, each with its cell and with what imported names mean in it."""
    program = [(cell, tree) for cell in cells if (tree := _parse(cell))]
    # A package that an exercise forbids parts of is imported by the lab's first cell, which may not be given.
    aliases = {top: top for top in (name.partition(".")[0] for name in forbids)}
    for _, tree in program:
        aliases |= _aliases(list(_statements(tree.body)), aliases, forbids)
    definitions = {name: [(cell, node) for node in nodes] for cell, tree in program for name, nodes in _bound(tree)}
    names, visited = set(roots), set()
    waiting = [found for name in roots for found in definitions.get(name, ())]
    while waiting:
        cell, definition = waiting.pop(0)
        if id(definition) in visited:
            continue
        visited.add(id(definition))
        used = _globals_used(definition)
        known = {alias: dotted for alias, dotted in aliases.items() if alias in used}
        known |= _aliases(list(ast.walk(definition)), known, forbids)
        yield cell, definition, known
        waiting += [found for name in used - names for found in definitions.get(name, ())]
        names |= used


def program_of(answers: Sequence[object]) -> list[str]:
    """The text of the program that the answers live in: the notebook's cells so far, or their module's source."""
    shell = current_shell()
    if shell is not None:
        return [shell.transform_cell(cell) for cell in shell.user_ns.get("In", [])]
    texts = []
    for answer in answers:
        try:
            texts.append(inspect.getsource(inspect.getmodule(answer) or answer))
        except (OSError, TypeError):
            continue
    return texts


def _parse(cell: str) -> ast.Module | None:
    try:
        return ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _aliases(nodes: Sequence[ast.AST], known: dict[str, str], forbids: Sequence[str]) -> dict[str, str]:
    """The names that these statements bind to a module or to something in one: `F` -> "torch.nn.functional"."""
    found: dict[str, str] = {}
    both = ChainMap(found, known)
    for node in nodes:
        if isinstance(node, ast.Import):
            for item in node.names:
                top = item.name.split(".")[0]
                found[item.asname or top] = item.name if item.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {item.name: item.asname or item.name for item in node.names}
            if "*" in names:
                parts = (name.rpartition(".") for name in forbids)
                names = {name: name for module, _, name in parts if module == node.module}
            found |= {bound: f"{node.module}.{name}" for name, bound in names.items()}
        elif isinstance(node, ast.Assign) and (dotted := _dotted(node.value, both)):
            found |= {target.id: dotted for target in node.targets if isinstance(target, ast.Name)}
    return found


def _globals_used(definition: ast.AST) -> set[str]:
    """The names of its cell that a definition uses; a parameter or a local variable of the same name is not one."""
    try:
        waiting = [symtable.symtable(ast.unparse(definition), "<answer>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # It parses but would not compile, or is nested beyond reason: follow every name.
        return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    found: set[str] = set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        top = table.get_type() == "module"
        found |= {one.get_name() for one in table.get_symbols() if one.is_referenced() and (top or one.is_global())}
    return found


def _bound(tree: ast.Module) -> Iterator[tuple[str, list[ast.AST]]]:
    """The names that each statement of a cell defines, with all its definitions of them: an `if` may have two."""
    for statement in tree.body:
        found: dict[str, list[ast.AST]] = {}
        for node in _statements([statement]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(node.name, []).append(node)
            else:
                head = _without_body(node)
                for name in dict.fromkeys(_names_bound(head)):
                    found.setdefault(name, []).append(head)
        yield from found.items()


def _attributes_made(tree: ast.Module | None) -> Iterator[str]:
    """The names of methods that a cell's classes define, and of attributes that it sets."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef):
            yield from (part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from (name for part in node.body for name in _names_bound(part))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _without_body(node: ast.stmt) -> ast.stmt:
    """The statement without those inside it."""
    head, nothing = copy.copy(node), [ast.Pass()]
    for name in {"body", "orelse", "finalbody"} & set(node._fields):
        setattr(head, name, nothing if name == "body" else [])
    if isinstance(head, ast.Match):
        head.cases = [ast.match_case(case.pattern, case.guard, nothing) for case in head.cases]
    if isinstance(head, ast.Try):
        head.handlers = [ast.ExceptHandler(None, None, nothing)]
    return head


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, or changes something in."""
    for node in ast.walk(statement):
        match node:
            case ast.Assign(targets=targets):
                pass
            case (
                ast.AnnAssign(target=target)
                | ast.AugAssign(target=target)
                | ast.NamedExpr(target=target)
                | ast.For(target=target)
                | ast.AsyncFor(target=target)
            ):
                targets = [target]
            case ast.withitem(optional_vars=target):
                targets = [target] if target else []
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
                continue
            case _:
                continue
        yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a cell runs: those inside `if`, `try`, `with` and loops too, none in functions."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, ()))
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _statements(part.body)


def _forbidden_name(node: ast.AST, aliases: Mapping[str, str], forbids: Sequence[str]) -> str | None:
    dotted = _dotted(node, aliases)
    if dotted in forbids:
        return dotted
    if dotted is None and isinstance(node, ast.Attribute) and METHOD + node.attr in forbids:
        return METHOD + node.attr
    return None


def _dotted(node: ast.AST, aliases: Mapping[str, str]) -> str | None:
    """`F.softmax` as "torch.nn.functional.softmax" where F is an imported name; None for anything computed."""
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    base = aliases.get(node.id) if isinstance(node, ast.Name) else None
    return ".".join([base, *reversed(attributes)]) if base else None
