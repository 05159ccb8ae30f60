# hint: Dead operations still run
import copy


class CountingBackend:
    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        graph = copy.deepcopy(gm.graph)
        graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output") or lab11.writes(node))
        self.counts.append(sum(node.op.startswith("call_") for node in graph.nodes))
        return gm.forward
