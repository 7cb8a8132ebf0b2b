"""Whatever has points lists them as plain records, which tables are made of."""

import json
import math

import pytest

import ensize
from ensize.profiles import profile
from ensize.synthetic import Family

FAMILY = Family.splits_pay(objects=300)
SIZES = (25_000, 50_000, 100_000, 200_000, 400_000)


@pytest.fixture(scope="module")
def pools():
    return [FAMILY.of(size).predictions(8) for size in SIZES]


@pytest.fixture(scope="module")
def outcomes(pools):
    plane = ensize.plane_of(pools)
    search = ensize.MemorySplitSearch("100k", smallest=50_000)
    while wanted := search.ask():
        said = FAMILY.of(wanted.size).predictions(list(wanted.seeds))
        search.tell(wanted, list(said.rows), said.targets)
    return {
        "curve": ensize.score(pools[0]),
        "curve of sketches": ensize.score(ensize.Sketch.of(pools[0])),
        "forecast": ensize.forecast(pools[0], to=[8, math.inf]),
        "back-test": ensize.back_test(FAMILY.of(25_000).predictions(24), to=[8]),
        "profile": profile(pools[0]),
        "plane": plane,
        "along the size": plane.along_size(2),
        "along the budget": plane.along_budget(),
        "advantages": plane.advantage(),
        "splits": ensize.split(plane, "400k"),
        "optimal splits": ensize.optimal_splits_test(plane),
        "joint laws": ensize.joint_law_test(plane),
        "search": search,
    }


def test_records_are_plain(outcomes):
    for name, outcome in outcomes.items():
        records = outcome.records()
        assert records, name
        keys = list(records[0])
        for record in records:
            assert list(record) == keys, name
            for key, value in record.items():
                plain = isinstance(value, (str, int, float, bool, type(None)))
                assert plain, (name, key, type(value))
                assert type(value).__module__ == "builtins", (name, key)
        json.dumps(records)


def test_pandas_reads_records(outcomes):
    pandas = pytest.importorskip("pandas")
    for name, outcome in outcomes.items():
        records = outcome.records()
        frame = pandas.DataFrame(records)
        assert len(frame) == len(records), name
        assert list(frame.columns) == list(records[0]), name
    curve = outcomes["curve"]
    frame = pandas.DataFrame(curve.records()).set_index("n")
    assert frame.loc[4, "cnll"] == curve.cnll[3]


def test_polars_reads_records(outcomes):
    polars = pytest.importorskip("polars")
    for name, outcome in outcomes.items():
        records = outcome.records()
        frame = polars.DataFrame(records)
        assert frame.height == len(records), name
        assert frame.columns == list(records[0]), name
    curve = outcomes["curve"]
    frame = polars.DataFrame(curve.records())
    assert frame.filter(polars.col("n") == 4)["cnll"].item() == curve.cnll[3]
