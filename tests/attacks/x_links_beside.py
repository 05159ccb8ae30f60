"""Other files of the submission are links to secrets, which a copy of the folder would carry into the feedback."""

HARMLESS = True
DAMAGE = ("page",)


def folder(path, places):
    from pathlib import Path

    (path / "notes.txt").symlink_to(Path(places["HOME"], ".ssh", "id_ed25519"))
    (path / "data").symlink_to(Path(places["COURSE"], "source"))
    (path / "loop").symlink_to(".")
    (path / "up").symlink_to("../../..")
    (path / "gone").symlink_to("/no/such/file")
