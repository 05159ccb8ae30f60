import itertools


def write_shards(store, samples, per_shard):
    """Groups by number, and names shards by their first key."""
    names = []
    for _, group in itertools.groupby(enumerate(samples), key=lambda pair: pair[0] // per_shard):
        group = [sample for _, sample in group]
        out = io.BytesIO()
        tar = tarfile.TarFile(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT)
        for key, parts in group:
            for name in parts:
                header = tarfile.TarInfo(key + "." + name)
                header.size = len(parts[name])
                tar.addfile(header, io.BytesIO(parts[name]))
        tar.close()
        name = f"data/{group[0][0]}.tar"
        store.write(name + ".new", out.getvalue())
        store.rename(name + ".new", name)
        names.append(name)
    return names


def _samples(name, data):
    """As a stream, a sample at a time."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|") as tar:
            key, parts = None, {}
            for member in tar:
                found, extension = member.name.split(".", 1)
                if key not in (None, found):
                    yield key, parts
                    parts = {}
                key = found
                parts[extension] = tar.extractfile(member).read()
            if parts:
                yield key, parts
    except tarfile.ReadError as error:
        raise RuntimeError(f"shard {name} is damaged") from error


def read_shards(store, names, buffer_size, seed):
    """The one that comes in takes the place of the one that leaves."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(names), generator=generator).tolist()
    stream = (sample for at in order for sample in _samples(names[at], store.read(names[at])))
    buffer = list(islice(stream, buffer_size - 1))
    for sample in stream:
        buffer.append(sample)
        at = int(torch.randint(len(buffer), (), generator=generator))
        buffer[at], buffer[-1] = buffer[-1], buffer[at]
        yield buffer.pop()
    for at in torch.randperm(len(buffer), generator=generator).tolist():
        yield buffer[at]
