"""The page without a browser: what it says, that it escapes, and the same bytes."""

import json
import re
from html.parser import HTMLParser

import pytest

from ensize import InputError, Store, figures, report, split
from ensize.reports import gallery, pages
from ensize.reports.libraries import integrity, libraries
from ensize.reports.markup import Markup, data_block, element, escaped
from ensize.reports.planner import budgets_of
from ensize.reports.studies import ranges, read_studies
from ensize.synthetic import World
from report_stores import SIZES, make_store, quicken
from test_cli import mistake, run

NASTY = "<script>document.title='taken'</script>"


class Reader(HTMLParser):
    """Lists the elements of a page, and checks that they are closed in order."""

    void = frozenset({"meta", "link", "input", "img", "br", "hr"})

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.ids, self.text = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("stores") / "small")


@pytest.fixture(scope="module")
def without_figures(store):
    """The page's text, its parts, and what the planner has."""
    studies = read_studies([store])
    options = {"within": "0.5%", "budgets": [], "title": None}
    html = pages.page_of(studies, options, drawn=False).html
    data = re.search(r'id="data">(.*?)</script>', html)[1]
    return html, Reader(html), json.loads(data)["planners"]


def test_text_is_escaped_and_markup_is_not():
    assert escaped("<b> & 'c'") == "&lt;b&gt; &amp; &#x27;c&#x27;"
    assert element("p", Markup("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert (
        element("a", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;"></a>'
    )
    assert escaped("\udcff\0") == "?\ufffd"


def test_attributes_are_names():
    with pytest.raises(ValueError, match="no attribute"):
        element("a", **{"x onclick": "y"})


def test_data_end_no_script():
    hostile = {"</script><!--": ["\u2028", float("nan"), "<script>"]}
    block = str(data_block("data", hostile))
    inside = block.split(">", 1)[1].rsplit("</script>", 1)[0]
    assert "<" not in inside
    assert "\u2028" not in inside
    assert json.loads(inside) == {"</script><!--": ["\u2028", None, "<script>"]}


def test_libraries_are_as_released_and_may_stand_in_a_page():
    for each in libraries():
        assert "</script" not in each.source.lower()
        assert "\r" not in each.source
        assert "ISC License" in each.license_text or "Permission" in each.license_text


def test_integrity_is_that_of_the_standard():
    # The example of the specification of content security policies.
    assert (
        integrity("alert('Hello, world.');")
        == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    )


def test_seeds_are_written_in_few_words():
    assert ranges([5]) == "5"
    assert ranges([3, 1, 2, 7]) == "1-3, 7"


def test_budgets_are_round_or_the_pools_own():
    assert budgets_of([900.0, 2300.0], [1234.5])[:4] == [900.0, 1000.0, 1234.5, 1250.0]


def test_the_planner_says_what_split_says(store, without_figures):
    _, _, (planner,) = without_figures
    for unit, score in (("parameters", "cnll"), ("seconds", "accuracy")):
        known = planner["units"][unit]
        for k in (0, known["start"], len(known["budgets"]) // 2):
            found = split(store, known["budgets"][k], score=score, cost=unit)
            plan = known["scores"][score][k]
            assert plan["splits"] == found.records()
            assert plan["splits"][plan["best"]]["n"] == found.best.n
            assert plan["verdict"]["sentence"] == found.verdict.sentence
            assert [plan["splits"][i]["n"] for i in plan["as_good"]] == [
                each.n for each in found.as_good
            ]


def test_curves_are_those_of_the_plane(store, without_figures):
    plane = read_studies([store])[0].planes[0]
    _, _, (planner,) = without_figures
    for k, pool in enumerate(planner["pools"]):
        curve = pool["curves"]["cnll"]
        measured = [n for n in curve["n"] if n <= pool["networks"]]
        assert curve["value"][: len(measured)] == plane.at(measured)[k].tolist()
        for low, value, high in zip(
            *(curve[name] for name in ("low", "value", "high")), strict=True
        ):
            assert low < value < high
        # What each network gains is what the curve falls by.
        first, second = curve["value"][:2]
        assert curve["gain"][0][0] == pytest.approx(first - second, abs=1e-12)


def test_the_answer_is_the_planners(without_figures):
    _, reader, (planner,) = without_figures
    unit = planner["units"]["parameters"]
    plan = unit["scores"]["cnll"][unit["start"]]
    assert unit["budgets"][unit["start"]] == SIZES[-1]
    best = plan["splits"][plan["best"]]
    text = " ".join(reader.text)
    assert plan["verdict"]["code"] == "split"
    said = f"Train {best['n']} networks of {best['pool']} rather than one world-200000."
    assert said in text
    assert plan["verdict"]["sentence"].removeprefix("a split") in text


def test_the_page_is_sound_html(without_figures):
    html, reader, _ = without_figures
    assert html.startswith("<!DOCTYPE html>")
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    labelled = {each["for"] for each in reader.all("label") if "for" in each}
    assert labelled <= set(reader.ids)
    links = {each["href"][1:] for each in reader.all("a")}
    assert links <= set(reader.ids)
    sections = {each["aria-labelledby"] for each in reader.all("section")[1:]}
    assert sections <= set(reader.ids)


def test_the_policy_lets_only_the_pages_scripts_run(without_figures):
    html, reader, _ = without_figures
    policy = next(
        each["content"]
        for each in reader.all("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    assert len(scripts) == 3
    allowed = policy.split("script-src ")[1].split(";")[0].split()
    assert allowed == [integrity(each) for each in scripts]
    addresses = [
        each[name]
        for _, each in reader.seen
        for name in ("src", "href", "srcset", "action", "data")
        if name in each
    ]
    assert all(each.startswith(("#", "data:")) for each in addresses)


def test_what_users_name_is_escaped(tmp_path):
    known = {"family": NASTY, "recipe": NASTY, "extra": {"torch": NASTY}}
    path = make_store(tmp_path / "a<b>&c", name=NASTY, **known)
    studies = read_studies([path])
    options = {"within": "0.5%", "budgets": [], "title": None}
    html = pages.page_of(studies, options, drawn=False).html
    reader = Reader(html)
    assert NASTY not in html
    assert NASTY in "".join(reader.text)
    assert len(reader.all("script")) == 4
    assert "b" in {tag for tag, _ in reader.seen}
    assert "<b>&c" not in html


def test_the_same_stores_make_the_same_bytes(store, tmp_path, monkeypatch):
    # All figures are in the page that the browser opens; these stand for them.
    few = {name: figures.DRAWINGS[name] for name in ("plane", "curves", "sizes")}
    monkeypatch.setattr(figures, "DRAWINGS", few)
    first = report(store, tmp_path / "first.html")
    again = report([store], tmp_path / "again.html")
    content = first.file.read_bytes()
    assert content == again.file.read_bytes()
    assert len(content) == first.size < 5_000_000
    # What stands where it was written is not in it.
    assert str(tmp_path).encode() not in content
    reader = Reader(content.decode())
    pictures = [each for each in reader.all("img") if "src" in each]
    assert len(pictures) == 3
    assert all(each["alt"] for each in pictures)


def test_a_budget_asked_for_is_answered_first(store, tmp_path, monkeypatch):
    quicken(monkeypatch)
    made = report(store, tmp_path / "a.html", budgets=["123456", 90_000])
    # By default it would be 200k, of which the best are four of one pool.
    assert made.headlines["small"].startswith("Train 2 networks of 61.73 k param")
    assert split(store, 123_456).best.n == 2


def test_a_budget_that_one_store_cannot_plan_is_said_to_be(
    store, tmp_path, monkeypatch
):
    quicken(monkeypatch)
    larger = make_store(tmp_path / "larger", networks=(0, 0, 4, 4), name="larger")
    with pytest.raises(InputError, match="smallest network takes 25,000"):
        report([store, larger], tmp_path / "a.html", budgets=[7])
    made = report([store, larger], tmp_path / "a.html", budgets=[50_000])
    assert "cannot" not in made.headlines["small"]
    assert made.headlines["larger"] == "50 k parameters cannot be planned."


def test_one_pool_without_sizes_is_answered_by_its_forecast(tmp_path, monkeypatch):
    quicken(monkeypatch)
    pool = World(objects=300).predictions(6)
    store = Store(tmp_path / "own")
    for i in range(6):
        store.add("resnet", i, pool.logits(i, 0, 300), pool.targets)
    made = report(store, tmp_path / "own.html")
    assert re.fullmatch(
        r"6 networks of resnet have CNLL 0\.\d{4}; ever more would bring 0\.\d{4}\.",
        made.headlines["own"],
    )
    html = made.file.read_text(encoding="utf-8")
    assert "cannot be said: pool" in " ".join(Reader(html).text)


def test_several_stores_share_a_page(store, tmp_path, monkeypatch):
    quicken(monkeypatch)
    other = make_store(tmp_path / "other", name="small")
    made = report([store, other], tmp_path / "both.html", title="Both & more")
    assert list(made.headlines) == ["small-1", "small-2"]
    reader = Reader(made.file.read_text(encoding="utf-8"))
    assert len(reader.all("option")) == 2
    assert "Both & more" in reader.text


def test_families_of_a_store_are_planned_apart(tmp_path, monkeypatch):
    quicken(monkeypatch)
    path = make_store(tmp_path / "two", networks=(3, 3, 0, 0), family="first")
    make_store(path, networks=(0, 0, 3, 3), family="second")
    made = report(path, tmp_path / "two.html")
    assert list(made.headlines) == ["small-first", "small-second"]
    page = made.file.read_text(encoding="utf-8")
    planners = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["planners"]
    assert [each["family"] for each in planners] == ["first", "second"]


def test_figures_beyond_the_room_are_left_out_with_a_sentence(store, monkeypatch):
    few = {name: figures.DRAWINGS[name] for name in ("plane", "curves", "sizes")}
    monkeypatch.setattr(figures, "DRAWINGS", few)
    monkeypatch.setattr(gallery, "_ROOM", 60_000)
    found = gallery.pictures_of([each.evidence for each in read_studies([store])])
    drawn = [each for each in found if each.source is not None]
    assert sum(len(each.source) for each in drawn) <= 60_000
    assert any("the page is full" in each.caption for each in found)


def test_a_page_without_matplotlib_says_so(without_figures):
    _, reader, _ = without_figures
    assert "install ensize[figures]" in " ".join(reader.text)


def test_mistakes_are_sentences(store, tmp_path):
    with pytest.raises(InputError, match=r"name it, as in report\.html"):
        report(store, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="budget is 'much'"):
        report(store, tmp_path / "a.html", budgets=["much"])
    with pytest.raises(InputError, match="at least one"):
        report([], tmp_path / "a.html")
    with pytest.raises(InputError, match="is no folder"):
        report(store, tmp_path / "nowhere" / "a.html")
    few = make_store(tmp_path / "few", networks=(2, 2, 2, 2))
    with pytest.raises(InputError, match="at least 3 networks"):
        report(few, tmp_path / "a.html")
    assert not list(tmp_path.glob("*.html*"))


def test_the_verb(store, tmp_path, monkeypatch, capsys):
    quicken(monkeypatch)
    file = tmp_path / "page.html"
    code, out, _ = run("report", store, "-o", file, "--budget", "100k", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["file"] == str(file)
    assert said["size"] == file.stat().st_size
    assert said["options"]["budgets"] == [100_000]
    assert isinstance(said["warnings"], list)
    _, out, _ = run("report", store, "-o", file)
    assert out.startswith("small: Train ")
    told = mistake(monkeypatch, capsys, "report", tmp_path, "-o", file)
    assert "is no store" in told
