"""Kernels are taken out of a notebook's text with what they use, and with nothing that could leave them."""

from __future__ import annotations

import ast
import time

import pytest

from grading.supervisor.kernels import NotRerunnable, extract
from grading.supervisor.kernels.names import names_of
from labkit.meters.launch_log import digest_of_node

IMPORTS = "import math\nimport torch\nimport triton\nimport triton.language as tl\n"
PLAIN = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr = 8):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)
"""


def extracted(*cells: str, names: tuple[str, ...] = ("kernel",)) -> str:
    """The source of the last functions of these names."""
    wanted = {}
    for cell in cells:
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.FunctionDef) and node.name in names:
                wanted[node.name] = digest_of_node(node)
    return extract(names_of((IMPORTS, *cells)), wanted.items()).source


def kernel(line: str, before: str = "", arguments: str = "x_ptr, n") -> str:
    return f"{before}\n@triton.jit\ndef kernel({arguments}):\n    {line}\n"


def loaded(source: str) -> dict[str, object]:
    pytest.importorskip("triton", reason="Triton is not installed; it defines what kernels are")
    names: dict[str, object] = {}
    exec(compile(source, "kernels.py", "exec"), names)
    return names


def test_a_kernel_comes_with_its_imports_and_a_decorator() -> None:
    source = extracted(PLAIN)
    assert source.splitlines()[:2] == ["from triton import jit as rerun_jit", "from triton import language as tl"]
    assert "@rerun_jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr=8):" in source
    assert "kernel" in loaded(source)


def test_helpers_and_constants_come_with_it_the_last_of_each() -> None:
    cells = (
        "SIZE, OTHER = 3, 4\nHALF = SIZE / 2\n\n@triton.jit\ndef helper(x):\n    return x",
        "SIZE: tl.constexpr = tl.constexpr(4)\n\n@triton.jit\ndef helper(x):\n    return twice(x) + HALF",
        "@triton.jit\ndef twice(x):\n    return 2 * x",
        "UNUSED = open('x')\n" + kernel("tl.store(x_ptr, helper(n) * -math.inf + float('inf'))"),
    )
    source = extracted(*cells)
    names = loaded(source)
    assert (names["HALF"].value if hasattr(names["HALF"], "value") else names["HALF"]) == 2
    assert source.index("SIZE = tl.constexpr(4)") < source.index("HALF = SIZE / 2")
    assert "UNUSED" not in source and "return x\n" not in source


def test_two_kernels_of_one_name_are_told_apart() -> None:
    first, second = PLAIN, PLAIN.replace("n)", "n + 1)")
    digests = [digest_of_node(ast.parse(cell).body[0]) for cell in (first, second)]
    found = extract(names_of((IMPORTS, first, second)), [("kernel", digest) for digest in digests])
    assert list(found.kernels.values()) == ["kernel", "kernel_1"]
    assert found.source.count("n + 1)") == 1


@pytest.mark.parametrize(
    "line",
    [
        "x = tl.load(x_ptr + tl.arange(0, 8), mask=tl.arange(0, 8) < n, other=-float('inf')).to(tl.float32)",
        "for i in range(0, n, 4):\n        tl.store(x_ptr + i, i)",
        "for i in tl.static_range(4):\n        tl.store(x_ptr + i, tl.full((), i, x_ptr.dtype.element_ty))",
        "while n > 0:\n        n -= 1",
        "x, i = tl.max(tl.arange(0, 8), axis=0, return_indices=True)",
        "x = tl.arange(0, 8)[:, None] * 1.0 if n > 3 and not n == 5 else tl.zeros([8, 1], dtype=tl.float32)",
        "x: tl.constexpr = 3\n    tl.static_assert(x == 3)",
        "x = triton.cdiv(n, 4) + tl.extra.cuda.libdevice.tanh(1.0) + tl.math.exp2(2.0)",
        "x = tl.reduce(tl.arange(0, 8), 0, kernel)",
        "return",
        "tl.static_assert(n > 0, f'{n}')",
        "tl.device_print(f'{n}', open('x'))\n    print(n)\n    assert open('x')",
        "tl = n\n    tl.to(3)",
    ],
)
def test_what_kernels_do_is_allowed(line: str) -> None:
    source = extracted(kernel(line))
    assert "open" not in source
    loaded(source)


@pytest.mark.parametrize(
    "line, why",
    [
        ("x = ().__class__", "uses `.__class__`, which is no operation of Triton's"),
        ("x = tl.load.__globals__", "uses `triton.language.load.__globals__`"),
        ("x = n.handle", "uses `.handle`"),
        ("x = tl.core.os", "uses `triton.language.core.os`"),
        ("x = tl.core", "uses `triton.language.core`"),
        ("x = tl", "hands a module about"),
        ("x = tl.math", "hands a module about"),
        ("x = math.sys", "uses `math.sys`"),
        ("x = torch.exp(n)", "uses `torch.exp`"),
        ("x = tl.device_print('x', n)", "uses `triton.language.device_print`"),
        ("x = tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)", "uses `triton.language.inline_asm_elem"),
        ("import os", "has a `import` statement"),
        ("from os import system", "has a `importfrom` statement"),
        ("def inner(): pass", "has a `functiondef` statement"),
        ("class C: pass", "has a `classdef` statement"),
        ("with n: pass", "has a `with` statement"),
        ("try:\n        pass\n    except: pass", "has a `try` statement"),
        ("global x", "has a `global` statement"),
        ("del n", "has a `delete` statement"),
        ("raise n", "has a `raise` statement"),
        ("n.to = 3", "assigns to a part of something"),
        ("n[0] = 3", "assigns to a part of something"),
        ("n.value += 3", "assigns to a part of something"),
        ("x = [i for i in n]", "a form of Python that Triton does not have (ListComp)"),
        ("x = lambda: 1", "a form of Python that Triton does not have (Lambda)"),
        ("x = f'{n!r}'", "a form of Python that Triton does not have"),
        ("x = (y := n)", "a form of Python that Triton does not have (NamedExpr)"),
        ("x = {}", "a form of Python that Triton does not have (Dict)"),
        ("x = yield", "a form of Python that Triton does not have (Yield)"),
        ("x = min(*n)", "a form of Python that Triton does not have (Starred)"),
        ("x = min(**n)", "passes ** arguments"),
        ("x = tl.load(x_ptr, member=min)", "passes an argument `member`"),
        ("x = tl.load(x_ptr, _semantic=n)", "passes an argument `_semantic`"),
        ("for x in n: pass", "has a `for` over something else than a range"),
        ("for x in n.split(): pass", "has a `for` over something else than a range"),
        ("kernel[(1,)](n)", "calls what has no name"),
        ("x = (min if n else max)(n)", "calls what has no name"),
        ("x = id(n)", "uses `id`, which is neither Triton's nor a constant"),
        ("x = __import__('os')", "uses `__import__`"),
        ("x = __builtins__", "uses `__builtins__`"),
        ("x = getattr(n, 'x')", "uses `getattr`"),
        ("plain(n)", "calls `plain`, which is not under @triton.jit"),
        ("x = VALUE", "`VALUE` is not a plain constant"),
        ("x = COUNT", "`COUNT` is not a plain constant"),
        ("x = RIGHT", "`RIGHT` is not a plain constant"),
        ("x = POWER", "`POWER` is not a plain constant"),
        ("x = AGAIN", "`AGAIN` is made of itself"),
        ("x = OPENED", "`OPENED` uses `open`"),
    ],
)
def test_what_could_leave_a_kernel_is_refused(line: str, why: str) -> None:
    before = "VALUE = [open][0]('x')\nPOWER = 9**9**9\nCOUNT = 1\nCOUNT += 1\nLEFT, RIGHT = 'ab'\n"
    before += "AGAIN = 1\nAGAIN = AGAIN + 1\nOPENED = (open, 1)\ndef plain(x): pass"
    with pytest.raises(NotRerunnable) as caught:
        extracted(kernel(line, before))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "arguments, why",
    [
        ("*x_ptr", "takes * or ** arguments"),
        ("**x_ptr", "takes * or ** arguments"),
        ("x_ptr=open('x')", "A default of kernel `kernel` is not a plain constant"),
        ("x_ptr=[].append", "A default of kernel `kernel` is not a plain constant"),
    ],
)
def test_its_parameters_are_plain(arguments: str, why: str) -> None:
    with pytest.raises(NotRerunnable) as caught:
        extracted(kernel("return", arguments=arguments))
    assert why in str(caught.value)


def test_annotations_and_options_that_would_run_are_left_out() -> None:
    cell = PLAIN.replace("@triton.jit", "@triton.jit(do_not_specialize=['n'], noinline=bool(open('x')))")
    source = extracted(cell.replace("x_ptr,", "x_ptr: print('here'),"))
    assert "@rerun_jit(do_not_specialize=['n'])\ndef kernel(x_ptr, n, BLOCK: tl.constexpr=8):" in source
    assert "print" not in source and "open" not in source


def test_a_list_that_would_outlive_a_program_becomes_a_tuple() -> None:
    cell = "KEPT = tl.constexpr([1, []])\n" + kernel("x = KEPT, [n]", arguments="x_ptr, n=[2, [3]]")
    source = extracted(cell)
    assert "KEPT = tl.constexpr((1, ()))" in source and "def kernel(x_ptr, n=(2, (3,))):" in source and "[n]" in source


def test_small_powers_are_constants() -> None:
    assert "SIZE = 2 ** 10" in extracted("SIZE = 2**10\n" + kernel("x = SIZE"))


def test_functions_around_one_another_are_not_read_again_and_again() -> None:
    deep = "".join(" " * n + f"def f{n}():\n" for n in range(60)) + " " * 60 + "x = [" + "1, " * 20_000 + "]"
    began = time.process_time()
    assert {name for name, _ in names_of((deep,)).definitions} == {"f59", "f58"}
    assert time.process_time() - began < 5


def test_a_kernel_without_source_is_named_to_the_instructor_alone() -> None:
    with pytest.raises(NotRerunnable, match="A kernel that it launches has no source in this notebook's") as refused:
        extract(names_of((IMPORTS, PLAIN)), [("n_is_257", "")])
    assert "n_is_257" not in str(refused.value)
    assert refused.value.problem == "kernel `n_is_257` has no source in the notebook's cells"


def test_a_text_beyond_reason_is_refused() -> None:
    with pytest.raises(NotRerunnable, match="too long to be checked"):
        extracted(kernel("x = 1\n    " * 9000))
    with pytest.raises(NotRerunnable, match="a number that cannot be written down"):
        extracted(f"ODD = 0x{'f' * 6000}", kernel("x = ODD"))
    deep = kernel("x = " + "-" * 800 + "1")
    found = names_of((IMPORTS, deep))
    with pytest.raises(NotRerunnable, match="too deeply to be checked"):
        extract(found, found.definitions)


def test_cells_that_cannot_be_read_bind_nothing_and_magics_do_no_harm() -> None:
    found = extract(names_of((IMPORTS, "def (", "%matplotlib inline\nx = 1", PLAIN)), [("kernel", _digest(PLAIN))])
    assert "def kernel" in found.source


def _digest(cell: str) -> str:
    return digest_of_node(ast.parse(cell).body[0])
