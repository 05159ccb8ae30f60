# hint: An operation that writes into a tensor was removed
class CountingBackend:
    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        gm.graph.eliminate_dead_code()
        gm.recompile()
        self.counts.append(sum(node.op.startswith("call_") for node in gm.graph.nodes))
        return gm.forward
