class CountingBackend:
    def __init__(self):
        self.counts = []

    def __call__(self, gm, example_inputs):
        gm.graph.eliminate_dead_code(lambda n: n.op in ("placeholder", "output") or lab11.writes(n))
        gm.recompile()
        self.counts.append(len(gm.graph.nodes) - len(example_inputs) - 1)
        return gm
