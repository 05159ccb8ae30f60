# What is needed is found first, then the rest goes; the code is made by a GraphModule of its own.
class CountingBackend:
    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        needed = set()
        for node in reversed(gm.graph.nodes):
            if node.op == "output" or node in needed or lab11.writes(node):
                needed.add(node)
                needed.update(node.all_input_nodes)
        graph, copies = torch.fx.Graph(), {}
        for node in gm.graph.nodes:
            if node.op == "placeholder" or node in needed:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        self.counts += [len(needed) - sum(node.op in ("placeholder", "output") for node in needed)]
        return torch.fx.GraphModule(gm, graph)
