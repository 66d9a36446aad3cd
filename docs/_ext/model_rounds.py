"""``model-rounds``: the first runs of the models' blind rounds, and every miss."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_conformance.models.manifest import Manifest, load_models, model_root
from bentpipe_conformance.models.rounds import Review, Round, load_round, rounds_of
from bentpipe_pages import Printed, _escaped, _share, _table
from sphinx.application import Sphinx


class ModelRounds(Printed):
    """A table of rounds by model, then one of what was missed or does not count."""

    def lines(self) -> Iterable[str]:
        """The tables."""
        rounds = [
            found
            for manifest in load_models(model_root()).values()
            for found in self._held(manifest)
        ]
        rows = [
            (item.model, f"{item.number}", item.date, f"{len(item.edits)}", f"{len(item.valid)}",
             _share(item.caught, len(item.valid)))
            for item in rounds
        ]  # fmt: skip
        rows += [
            self._total(number, [item for item in rounds if item.number == number])
            for number in sorted({item.number for item in rounds})
        ]
        yield from _table(("model", "round", "first run", "edits", "valid", "noticed"), rows)
        yield ".. rubric:: Not noticed at the first run"
        yield ""
        cells = [
            (item.model, _escaped(edit.about), self._verdict(review))
            for item in rounds
            for edit, review in zip(item.edits, item.reviews, strict=True)
            if not (review.caught and review.counts)
        ]
        yield from _table(("model", "edit", "review"), cells, "matrix", "15 50 35")

    def _held(self, manifest: Manifest) -> Iterable[Round]:
        for number in rounds_of(manifest):
            path = manifest.folder / "blind" / f"round_{number}.toml"
            self.env.note_dependency(str(path))
            found = load_round(manifest, number)
            if found.reviews:
                yield found

    @staticmethod
    def _total(number: int, rounds: list[Round]) -> tuple[str, ...]:
        valid = sum(len(item.valid) for item in rounds)
        share = _share(sum(item.caught for item in rounds), valid)
        return (
            "all",
            f"{number}",
            "",
            f"{sum(len(item.edits) for item in rounds)}",
            f"{valid}",
            share,
        )

    @staticmethod
    def _verdict(review: Review) -> str:
        if not review.counts:
            return f"{review.valid}: {_escaped(review.reason)}"
        return f"since then noticed by {_escaped(review.since)}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("model-rounds", ModelRounds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
