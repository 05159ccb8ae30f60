"""Take inductor as far as its generated code, and read the kernels and their bytes from its scheduler.

Inductor's own figure, `num_bytes_accessed`, is 0 on a CPU. Here each buffer that a kernel touches counts the elements
that are touched, once however often they are read, and nothing that stays inside the kernel. A random number costs
what PyTorch's own operation costs, because the captured graph draws them as eager mode does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labkit.meters.compile.profile import Code, Kernel
from labkit.meters.compile.torch_private import copied, inside, lowered, operation_name


def code_of(gm: Any, inputs: Any, settings: dict[str, Any], with_source: bool) -> Code:
    """What inductor would compile for this FX graph. The graph itself stays as it is."""
    graph, source = lowered(copied(gm), inputs, settings, with_source)
    with inside(graph):
        nodes = graph.scheduler.nodes
        kernels = tuple(_kernel(node, _results(node, nodes)) for node in nodes if _is_kernel(node))
    return Code(bool(settings.get("is_backward", False)), kernels, source)


def _is_kernel(node: Any) -> bool:
    """Not one that only names a buffer, or one of several results of a library's call."""
    from torch._inductor.ir import MultiOutput
    from torch._inductor.scheduler import NopKernelSchedulerNode

    return not isinstance(node, NopKernelSchedulerNode) and not isinstance(node.node, MultiOutput)


def _results(call: Any, nodes: Iterable[Any]) -> list[str]:
    """The buffers of a library's call that has a node of its own for each of its results."""
    from torch._inductor.ir import MultiOutput

    names = call.get_buffer_names()
    return [node.node.get_name() for node in nodes if isinstance(node.node, MultiOutput) and names & _inputs(node)]


def _inputs(node: Any) -> set[str]:
    return {dep.name for dep in node.read_writes.reads}


def _kernel(node: Any, results: list[str]) -> Kernel:
    parts = tuple(node.get_nodes())
    inner = _stay_inside(node, parts)
    outputs = {name for part in parts for name in part.get_buffer_names()} - inner
    reads = (dep for part in parts for dep in part.read_writes.reads)
    writes = (dep for part in parts for dep in part.read_writes.writes)
    names = [name for part in parts for name in _operations(part)]
    generated = not any(part.is_extern() for part in parts)
    return Kernel(
        name="_".join(part.get_name() for part in parts),
        # Inductor also names those that made the arguments of a library's call.
        operations=tuple(dict.fromkeys(names)) if generated else tuple(names[-1:]),
        # What it writes and then reads again is in its registers.
        read_bytes=_bytes(reads, inner | outputs),
        written_bytes=_bytes(writes, inner) + sum(map(_size, results)),
        generated=generated,
    )


def _stay_inside(node: Any, parts: tuple[Any, ...]) -> set[str]:
    """The buffers that no other kernel and no result of the graph needs."""
    inside_names = {part.get_name() for part in (*parts, node)}
    return {
        buffer.get_name()
        for part in parts
        for buffer in part.get_outputs()
        if len(parts) > 1 and all(user.node.get_name() in inside_names for user in buffer.users)
    }


def _bytes(deps: Iterable[Any], without: set[str]) -> int:
    """Of each buffer what is touched, and never more than there is of it."""
    from torch._inductor.dependencies import WeakDep

    touched: dict[str, dict[Any, int]] = {}
    for dep in deps:
        if dep.name not in without and not isinstance(dep, WeakDep):
            touched.setdefault(dep.name, {})[dep] = int(dep.numbytes_hint())
    return sum(min(sum(parts.values()), _size(name)) for name, parts in touched.items())


def _size(name: str) -> int:
    """Bytes of a buffer or input."""
    from torch._inductor.dependencies import StarDep

    return int(StarDep(name).numbytes_hint())


def _operations(part: Any) -> list[str]:
    """The names of the operations of the FX graph that this part computes, in the graph's order."""
    origins = [node for node in getattr(part.node, "origins", None) or () if node.op == "call_function"]
    place = {node: number for number, node in enumerate(origins[0].graph.nodes)} if origins else {}
    origins.sort(key=lambda node: (place.get(node, -1), node.name))
    return [operation_name(node) for node in origins]
