"""What `track_traffic` hands back: launches with the bytes of each argument, lanes out of bounds, races, operations.

Caches are not modelled: a load counts each time it is asked for, and `unique_load_bytes` says what a perfect cache
would have to fetch.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from labkit.meters.traffic.eager import Operation

SECTOR_BYTES = 32
"""What a GPU's memory moves at once, however little of it is asked for."""

Program = tuple[int, int, int]


@dataclass
class ArgumentTraffic:
    """Traffic of one kernel argument in one launch.

        ArgumentTraffic("x_ptr", load_bytes=4096, unique_load_bytes=4096, sectors=128, useful_bytes=4096)

    unique_*: distinct bytes of the argument that were touched. sectors: 32-byte pieces of memory that the accesses
    touched, each access of a block by itself. useful_bytes: distinct bytes of these accesses.
    """

    name: str
    load_bytes: int = 0
    store_bytes: int = 0
    atomic_bytes: int = 0
    unique_load_bytes: int = 0
    unique_store_bytes: int = 0
    sectors: int = 0
    useful_bytes: int = 0

    @property
    def sector_efficiency(self) -> float:
        """Part of what memory moved that was asked for: 1 for neighbouring lanes, 1/8 for every eighth float32."""
        return self.useful_bytes / (SECTOR_BYTES * self.sectors) if self.sectors else 1.0


@dataclass
class OutOfBounds:
    """Lanes of one argument that lay outside of it in one launch. index is the first one's.

        OutOfBounds("add_kernel", "load", "x_ptr", index=1000, n_elements=1000, program=(7, 0, 0), lanes=24)

    Without strides they lay before its first element or behind its last, n_elements further on, and were masked off.
    strides: of the argument, where they lay between its elements; these were let through, and counted.
    """

    kernel: str
    kind: str
    argument: str
    index: int
    n_elements: int
    program: Program
    lanes: int
    strides: tuple[int, ...] = ()

    def __str__(self) -> str:
        more = f", and {self.lanes - 1} more lanes" if self.lanes > 1 else ""
        where = f"which has {self.n_elements} elements"
        if self.strides:
            where = f"which lies between the elements of a tensor of strides {self.strides}"
        return (
            f"kernel {self.kernel}, program {self.program}: {self.kind} of {self.argument}[{self.index}], {where}{more}"
        )


@dataclass
class LaunchRace:
    """Elements of one argument that two programs of a launch touch in no given order, one of them writing.

        LaunchRace("sum_kernel", "store after store", "out_ptr", 0, (0, 0, 0), (1, 0, 0), elements=1)

    kind: what the second did after what the first did, as "load after store"; "lanes" where two lanes of one program
    store different values at once. index and programs are the first such element's.
    """

    kernel: str
    kind: str
    argument: str
    index: int
    first: Program
    second: Program
    elements: int

    def __str__(self) -> str:
        more = f", and {self.elements - 1} more elements" if self.elements > 1 else ""
        if self.kind == "lanes":
            done = f"two lanes of program {self.second} store different values at once"
        else:
            second, first = self.kind.split(" after ")
            done = f"{second} by program {self.second} after {first} by program {self.first}, in no given order"
        return f"kernel {self.kernel}, {self.argument}[{self.index}]: {done}{more}"


@dataclass(frozen=True)
class Stored:
    """Which units of an argument's storage one launch stored to, packed: profiles hold one for each launch."""

    unit_bytes: int
    n_units: int
    packed: bytes

    @classmethod
    def of(cls, units: np.ndarray, unit_bytes: int) -> Stored:
        return cls(unit_bytes, units.size, zlib.compress(np.packbits(units).tobytes(), 1))

    def mask(self) -> np.ndarray:
        """Of each byte of the storage whether it was stored to."""
        bits = np.frombuffer(zlib.decompress(self.packed), np.uint8)
        return np.repeat(np.unpackbits(bits, count=self.n_units).astype(bool), self.unit_bytes)


@dataclass
class Launch:
    """One launch of a kernel; arguments are its tensors, by the parameter's name, and `stored` those it wrote to.

    n_undefined: reductions and products over masked lanes that were loaded without `other=`; undefined: the first one,
    in words.

    Launch("add_kernel", (8, 1, 1), {"x_ptr": ArgumentTraffic("x_ptr", load_bytes=4096)})
    """

    kernel: str
    grid: tuple[int, ...] = ()
    arguments: dict[str, ArgumentTraffic] = field(default_factory=dict)
    out_of_bounds: list[OutOfBounds] = field(default_factory=list)
    races: list[LaunchRace] = field(default_factory=list)
    stored: dict[str, Stored] = field(default_factory=dict, repr=False)
    n_undefined: int = 0
    undefined: str = ""

    @property
    def load_bytes(self) -> int:
        return sum(argument.load_bytes for argument in self.arguments.values())

    @property
    def store_bytes(self) -> int:
        return sum(argument.store_bytes for argument in self.arguments.values())

    @property
    def atomic_bytes(self) -> int:
        return sum(argument.atomic_bytes for argument in self.arguments.values())

    @property
    def sector_efficiency(self) -> float:
        sectors = sum(argument.sectors for argument in self.arguments.values())
        useful = sum(argument.useful_bytes for argument in self.arguments.values())
        return useful / (SECTOR_BYTES * sectors) if sectors else 1.0


@dataclass(eq=False)
class TrafficProfile:
    """All that a block of code launched and dispatched, in two lists, each in its own order.

        TrafficProfile([Launch("add_kernel", (8, 1, 1))], [Operation("add", 8192, 4096)])

    Equal to itself only: the profiles of nested blocks may well have the same contents.
    """

    launches: list[Launch] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def load_bytes(self) -> int:
        """Bytes read by kernels (without atomics) and by PyTorch's operations."""
        return sum(one.load_bytes for one in (*self.launches, *self.operations))

    @property
    def store_bytes(self) -> int:
        """Bytes written by kernels (without atomics) and by PyTorch's operations."""
        return sum(one.store_bytes for one in (*self.launches, *self.operations))

    @property
    def atomic_bytes(self) -> int:
        """Bytes of the elements that atomics named; memory reads and writes each of them."""
        return sum(launch.atomic_bytes for launch in self.launches)

    @property
    def total_bytes(self) -> int:
        return self.load_bytes + self.store_bytes + self.atomic_bytes

    @property
    def out_of_bounds(self) -> list[OutOfBounds]:
        return [one for launch in self.launches for one in launch.out_of_bounds]

    @property
    def races(self) -> list[LaunchRace]:
        return [one for launch in self.launches for one in launch.races]

    def __str__(self) -> str:
        lines = [f"{'':24}{'load':>14}{'store':>14}{'atomic':>12}{'sectors':>10}   (bytes; part of each sector used)"]
        for launch in self.launches:
            lines.append(f"kernel {launch.kernel}, grid {launch.grid}")
            for one in launch.arguments.values():
                lines.append(
                    f"  {one.name:22}{one.load_bytes:>14,}{one.store_bytes:>14,}{one.atomic_bytes:>12,}"
                    f"{one.sector_efficiency:>10.0%}"
                )
        for one in self.operations:
            lines.append(f"torch.{one.name:18}{one.load_bytes:>14,}{one.store_bytes:>14,}")
        lines.append(f"{'total':24}{self.load_bytes:>14,}{self.store_bytes:>14,}{self.atomic_bytes:>12,}")
        lines += [f"OUT OF BOUNDS: {one}" for one in self.out_of_bounds]
        lines += [f"RACE: {one}" for one in self.races]
        lines += [f"UNDEFINED: {launch.undefined}" for launch in self.launches if launch.undefined]
        return "\n".join(lines)
