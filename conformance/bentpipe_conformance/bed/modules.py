"""Which module files of a kernel to load, in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from bentpipe_conformance.bed.errors import BedError


def resolve(folder: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """Files of the modules ``names`` and of what they depend on, each after its dependencies.

    ``folder`` holds ``modules.dep`` and ``modules.builtin`` of one kernel version. Modules built
    into the kernel need no file.

    Raises:
        BedError: the files are missing or the kernel has no such module.
    """
    try:
        dependencies = _dependencies((folder / "modules.dep").read_text(encoding="utf-8"))
    except OSError:
        raise BedError(
            f"{folder} has no modules.dep; install the package user-mode-linux again."
        ) from None
    builtin: set[str] = set()
    with contextlib.suppress(OSError):
        lines = (folder / "modules.builtin").read_text(encoding="utf-8").splitlines()
        builtin = {_name(line) for line in lines if line.strip()}
    files = {_name(file): file for file in dependencies}
    ordered: dict[str, None] = {}
    for name in names:
        wanted = name.replace("-", "_")
        if wanted in files:
            _visit(files[wanted], dependencies, ordered, ())
        elif wanted not in builtin:
            raise BedError(
                f"The kernel of {folder} has no module {name}; "
                "build the bed's own kernel with `bentpipe bed build`."
            )
    return tuple(folder / file for file in ordered)


def _dependencies(text: str) -> dict[str, list[str]]:
    """The lines ``file: files it needs`` of a modules.dep."""
    parts = (line.partition(":") for line in text.splitlines())
    return {file.strip(): needed.split() for file, colon, needed in parts if colon}


def _visit(
    file: str, dependencies: dict[str, list[str]], ordered: dict[str, None], above: tuple[str, ...]
) -> None:
    if file in above:
        raise BedError(f"modules.dep is damaged: {file} depends on itself; reinstall the package.")
    # modprobe's order: the last dependency named is needed first.
    for needed in reversed(dependencies.get(file, [])):
        _visit(needed, dependencies, ordered, (*above, file))
    ordered[file] = None


def _name(file: str) -> str:
    return Path(file).name.partition(".")[0].replace("-", "_")
