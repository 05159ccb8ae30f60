# hint: Dead operations still run
class CountingBackend:
    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        needed = set()
        for node in reversed(gm.graph.nodes):
            if node.op == "output" or node in needed or lab11.writes(node):
                needed.add(node)
                needed.update(node.all_input_nodes)
        self.counts.append(sum(node.op.startswith("call_") for node in needed))
        return gm.forward
