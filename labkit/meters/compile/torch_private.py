"""Everything of PyTorch that the meter uses and that is not public, in one place.

Tried with 2.11, 2.12, 2.13 and 2.15. A newer version that moves one of these names makes the meter raise AttributeError
with it, rather than count wrong. Used are:

- `torch._dynamo.eval_frame._callback_from_stance(callback)`: called once whenever a compiled function is called;
- `torch._dynamo.convert_frame._compile(code, ...)`: compiles one frame, or raises why not;
- `torch._dynamo.convert_frame.get_and_maybe_log_recompilation_reasons(...)`: the guards that failed;
- `torch._dynamo.output_graph.OutputGraph.compile_subgraph(tx, reason, ...)` and `.call_user_compiler(gm, inputs)`;
- `torch._inductor.compile_fx`: `compile_fx` (and its parameter `inner_compile`), `fake_tensor_prop`,
  `_recursive_post_grad_passes`, `_recursive_record_original_output_strides`, `view_to_reshape`,
  `min_cut_rematerialization_partition`; `torch._inductor.utils.shape_env_from_inputs`;
- `torch._inductor.graph.GraphLowering`, `torch._inductor.debug.DebugContext`, `torch._inductor.virtualized.V`, the
  nodes of `torch._inductor.scheduler` and the dependencies of `torch._inductor.dependencies`;
- `torch._inductor.cpu_vec_isa.valid_vec_isa_list`, `torch._inductor.cpp_builder.get_cpp_compiler` and its `is_gcc`,
  which look for a compiler, or from PyTorch 2.15 on start it, and are told instead;
- `torch._dynamo.backends.common.aot_autograd`, `torch._functorch.partitioners`, and
  `torch._inductor.decomposition.select_decomp_table`;
- `torch.UntypedStorage._cdata`, by which two tensors are known to lie in one storage;
- `torch._dynamo.guards.profile_guard_manager`, which times the guards of each new version for PyTorch's own logs, and
  for it first drives everything out of the processor's caches: left out, a quarter of the CPU time of a small compile;
- settings of `torch._inductor.config` and `torch._functorch.config`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

Around = Callable[..., Any]
"""(the function itself, *its arguments) -> what it is to return."""


@contextmanager
def patches(
    *, on_call: Around, on_frame: Around, on_guards: Around, on_subgraph: Around, on_backend: Around
) -> Iterator[None]:
    """Wrap the five places of Dynamo that tell what it does, and leave out what it does for its own logs alone."""
    from torch._dynamo import convert_frame, eval_frame
    from torch._dynamo.output_graph import OutputGraph

    with ExitStack() as stack:
        stack.enter_context(untimed_guards())
        for home, name, around in (
            (eval_frame, "_callback_from_stance", on_call),
            (convert_frame, "_compile", on_frame),
            (convert_frame, "get_and_maybe_log_recompilation_reasons", on_guards),
            (OutputGraph, "compile_subgraph", on_subgraph),
            (OutputGraph, "call_user_compiler", on_backend),
        ):
            stack.enter_context(_wrapped(home, name, around))
        yield


@contextmanager
def untimed_guards() -> Iterator[None]:
    """Compile without timing the guards; as usual where this PyTorch does not time them so."""
    from torch._dynamo import guards

    if not hasattr(guards, "profile_guard_manager"):
        yield
        return
    with _wrapped(guards, "profile_guard_manager", lambda real, *args, **kwargs: 0.0):
        yield


@contextmanager
def stopped_inductor(inner_compile: Callable[..., Any], on_partition: Around) -> Iterator[None]:
    """Have inductor call `inner_compile(gm, inputs, **settings)` where it would generate, compile and load code.

    Random numbers are drawn as in eager mode (`fallback_random`), because the captured graph is what runs. Caches are
    off: a graph that was found in one would not be seen.
    """
    from torch._functorch import config as functorch_config
    from torch._inductor import compile_fx
    from torch._inductor import config as inductor_config

    def stopped(real: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        # It calls itself where it is given settings, with this argument already there.
        settings.setdefault("inner_compile", inner_compile)
        return real(*args, **settings)

    with (
        functorch_config.patch(enable_autograd_cache=False),
        inductor_config.patch(fallback_random=True, fx_graph_cache=False, fx_graph_remote_cache=False),
        _wrapped(compile_fx, "compile_fx", stopped),
        _wrapped(compile_fx, "min_cut_rematerialization_partition", on_partition),
    ):
        yield


def lowered(gm: Any, inputs: Any, settings: dict[str, Any], with_source: bool) -> tuple[Any, str]:
    """(inductor's graph with its scheduled kernels, the source of its code) for an FX graph, which is changed.

    The source is empty unless it is asked for. It has no vector instructions, because finding out which of them the
    processor has takes a compiler.
    """
    import torch
    from torch._inductor import compile_fx, cpp_builder, cpu_vec_isa
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.utils import shape_env_from_inputs
    from torch._inductor.virtualized import V

    is_inference = bool(settings.get("is_inference", False))
    with (
        torch.no_grad(),
        DebugContext(),
        _wrapped(cpu_vec_isa, "valid_vec_isa_list", lambda real: []),
        _wrapped(cpp_builder, "get_cpp_compiler", lambda real: "g++"),
        _wrapped(cpp_builder, "is_gcc", lambda real: True),
    ):
        compile_fx.view_to_reshape(gm)
        fake_mode = compile_fx.fake_tensor_prop(gm, inputs)
        compile_fx._recursive_record_original_output_strides(gm)
        with V.set_fake_mode(fake_mode):
            compile_fx._recursive_post_grad_passes(gm, is_inference=is_inference)
            graph = GraphLowering(
                gm,
                example_inputs=inputs,
                shape_env=shape_env_from_inputs(inputs),
                is_inference=is_inference,
                is_backward=bool(settings.get("is_backward", False)),
            )
            with V.set_graph_handler(graph), V.set_extern_kernel_nodes([]):
                graph.run(*inputs)
                if with_source:
                    return graph, graph.codegen()[0].value
                graph._update_scheduler()
                return graph, ""


def copied(gm: Any) -> Any:
    """An FX graph of its own on the same modules and parameters."""
    import torch

    graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    result = graph.graph_copy(gm.graph, values)
    output = next(node for node in gm.graph.nodes if node.op == "output")
    graph.output(result).meta = dict(output.meta)
    return torch.fx.GraphModule(gm, graph)


def operation_name(node: Any) -> str:
    """What a node of an FX graph calls: "add" for torch.add, operator.add, the method and the ATen operator."""
    if node.op != "call_function":
        return str(node.target)
    return getattr(node.target, "_opname", None) or getattr(node.target, "__name__", str(node.target))


def storages_of(node: Any) -> dict[int, int]:
    """Bytes by storage of the tensors that a node of an FX graph stands for; empty for a node that is no tensor.

    Two nodes have a storage in common if one is a view of the other.
    """
    import torch

    value = getattr(node, "meta", {}).get("val")
    found = {}
    for tensor in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(tensor, torch.Tensor):
            storage = tensor.untyped_storage()
            found[storage._cdata] = int(storage.nbytes())
    return found


def cut_by_aot(function: Callable[..., Any], inputs: tuple[Any, ...], budget: float) -> list[tuple[Any, Any, int]]:
    """(forward graph, backward graph, number of the model's outputs) of each graph of a function.

    They are cut by inductor's partitioner after its own decompositions, and run as they are.
    """
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config as functorch_config
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.decomposition import select_decomp_table

    cuts = []

    def cut(joint: Any, args: Any, **settings: Any) -> tuple[Any, Any]:
        forward, backward = min_cut_rematerialization_partition(joint, args, compiler="inductor", **settings)
        cuts.append((forward, backward, settings["num_fwd_outputs"]))
        return forward, backward

    def as_it_is(gm: Any, args: Any) -> Any:
        return make_boxed_func(gm.forward)

    backend = aot_autograd(fw_compiler=as_it_is, decompositions=select_decomp_table(), partition_fn=cut)
    torch.compiler.reset()
    with functorch_config.patch(activation_memory_budget=budget, enable_autograd_cache=False):
        torch.compile(function, backend=backend, dynamic=False)(*inputs)
    return cuts


@contextmanager
def inside(graph: Any) -> Iterator[None]:
    """Where sizes of a lowered graph may be asked for."""
    from torch._inductor.virtualized import V

    with V.set_graph_handler(graph):
        yield


@contextmanager
def _wrapped(home: Any, name: str, around: Around) -> Iterator[None]:
    real = getattr(home, name)

    @functools.wraps(real)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return around(real, *args, **kwargs)

    setattr(home, name, wrapper)
    try:
        yield
    finally:
        setattr(home, name, real)
