class CountingBackend:
    counts = None

    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        while dead := [n for n in gm.graph.nodes if n.op[:5] == "call_" and not n.users and not lab11.writes(n)]:
            for node in dead:
                gm.graph.erase_node(node)
        gm.graph.lint()
        gm.recompile()
        operations = [node for node in gm.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
        self.counts.append(len(operations))
        return lambda *tensors: gm(*tensors)
