"""Small stores to report on, for the tests of reports."""

from types import SimpleNamespace

from ensize.reports import pages
from ensize.stores import Store
from ensize.synthetic import Family

SIZES = (25_000, 50_000, 100_000, 200_000)


def make_store(path, *, networks=(10, 8, 6, 6), name="small", objects=250, **known):
    """Record worlds of four sizes whose best split is known, as a study would."""
    family = Family.splits_pay(objects=objects)
    store = Store(path)
    for size, count in zip(SIZES, networks, strict=True):
        pool = family.of(size).predictions(max(count, 1))
        for i in range(count):
            store.add(
                f"world-{size}",
                i,
                pool.logits(i, 0, objects),
                pool.targets,
                **{
                    "size": size,
                    "multiply_adds": 20 * size,
                    "family": "synthetic",
                    "recipe": "drawn, not trained",
                    "extra": {"prediction_seconds": str(size / 1e6)},
                    **known,
                },
            )
    if name is not None:
        # JSON's strings are TOML's, too.
        text = name.replace("\\", "\\\\").replace('"', '\\"')
        (path / "study.toml").write_text(f'name = "{text}"\n', encoding="utf-8")
    return path


def quicken(monkeypatch):
    """Leave out figures and claims, which have tests of their own and take long."""
    monkeypatch.setattr(pages, "pictures_of", lambda *_, **__: ())
    nothing = SimpleNamespace(answers=())
    monkeypatch.setattr(pages, "check_claims", lambda *_, **__: nothing)
