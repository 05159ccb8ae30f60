"""`kit` in a cell of its own says what it has."""

from __future__ import annotations

from labkit.capstone import kit


def test_the_kit_lists_what_it_has_with_arguments_and_what_each_is_for() -> None:
    lines = repr(kit).splitlines()
    assert "kit.chunked_loss(x, head, y, n_chunks=8)" in lines
    place = lines.index("kit.AdamW(parameters, lr, betas=(0.9, 0.99), weight_decay=0.0, eps=1e-08)")
    assert lines[place + 1] == "    Both moments in float32: 8 bytes a parameter."
    listed = {line.split("(")[0] for line in lines if line.startswith("kit.")}
    assert listed == {f"kit.{name}" for name in vars(kit) if not name.startswith("_")}
