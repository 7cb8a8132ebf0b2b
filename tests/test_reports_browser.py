"""The page in a real browser: nothing leaves it, and the planner answers."""

import json
import os
import re
import shutil

import pytest

from ensize import report
from report_stores import make_store, quicken
from test_cli import run

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed (group dev)"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium; apt-get install chromium"
)

NASTY = "<script>document.title='taken'</script>"
WIDTHS = {"desktop": 1280, "phone": 380}


@pytest.fixture(scope="module")
def browser():
    # Its sandbox does not start as root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A store of a study with a hostile name, and its page with every figure."""
    folder = tmp_path_factory.mktemp("browser")
    store = make_store(folder / "small", name=NASTY, recipe=NASTY)
    return store, report(store, folder / "small.html", budgets=[150_000]).file


@pytest.fixture
def opened(browser, small):
    """Open the page at a width; what the browser complains of fails the test."""
    contexts, heard, asked = [], [], []

    def open_at(width=1280, file=small[1], **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: heard.append(said.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda sent: asked.append(sent.url))
        page.goto(file.as_uri())
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert heard == []
    assert all(each.startswith(("file://", "data:")) for each in asked)
    assert len({each for each in asked if each.startswith("file:")}) == 1


def command_of(page):
    """The command that the page says prints the same, as its words."""
    return page.locator("#command").inner_text().split()


def check_same(page, store):
    """Compare what the table shows with what the command on the page prints."""
    program, verb, folder, *options = command_of(page)
    assert (program, verb, folder) == ("ensize", "split", store.name)
    code, out, _ = run(verb, store, *options)
    assert code == 0
    found = json.loads(out)
    rows = page.locator("#splits tr").all()
    said = [
        {
            key: float(row.locator(f"[data-{key}]").get_attribute(f"data-{key}"))
            for key in ("n", "total", "value")
        }
        for row in rows
    ]
    assert said == [
        {key: record[key] for key in ("n", "total", "value")}
        for record in found["splits"]
    ]
    best = page.locator("#splits tr.best [data-n]").get_attribute("data-n")
    assert int(best) == found["best"]["n"]
    sentence = page.locator("#verdict p").nth(1).inner_text()
    assert sentence.lower() == f"{found['verdict']['sentence']}.".lower()
    return found


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_its_window_and_complains_of_nothing(opened, width, theme):
    page = opened(width, color_scheme=theme)
    page.wait_for_selector("#chart-curve svg")
    for details in page.locator("details").all():
        details.evaluate("each => { each.open = true; }")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    lightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert (lightness > 200) == (theme == "light")
    # Every picture can be drawn.
    page.evaluate(
        """() => Promise.all([...document.images].map((each) => {
          each.loading = "eager";
          return each.decode();
        }))"""
    )


def test_a_hostile_name_is_but_text(opened):
    page = opened()
    assert page.title() == f"{NASTY}: how many networks, and how large?"
    assert page.locator("h1").inner_text() == NASTY
    assert page.locator("script").count() == 4


def test_the_planner_says_what_split_says(opened, small):
    page = opened()
    found = check_same(page, small[0])
    assert found["budget"] == 150_000
    for unit, score in (
        ("multiply-adds", "cnll"),
        ("seconds", "accuracy"),
        ("parameters", "accuracy"),
    ):
        page.check(f"input[name=unit][value={unit}]", force=True)
        page.check(f"input[name=score][value={score}]", force=True)
        found = check_same(page, small[0])
        assert (found["options"]["in"], found["options"]["score"]) == (unit, score)


def test_it_answers_to_the_mouse(opened, small):
    page = opened()
    width = page.locator("#budget").bounding_box()["width"]
    page.locator("#budget").click(position={"x": width - 3, "y": 12})
    largest = page.locator("#budget").get_attribute("max")
    assert page.locator("#budget").input_value() == largest
    check_same(page, small[0])
    page.locator("#splits tr").last.click()
    chosen = page.locator("#splits tr.chosen [data-n]").get_attribute("data-n")
    assert f"{chosen} networks" in page.locator("#next-sentence").inner_text()
    # A click on the chart chooses the split that is nearest.
    page.locator("#chart-splits svg").click(position={"x": 60, "y": 150})
    first = page.locator("#splits tr").first
    assert "chosen" in first.get_attribute("class")


def test_it_answers_to_the_keyboard(opened, small):
    page = opened()
    page.focus("#budget")
    before = page.locator("#verdict").inner_text()
    shown = page.locator("#budget-text").input_value()
    page.keyboard.press("Home")
    assert page.locator("#budget").input_value() == "0"
    assert page.locator("#budget-text").input_value() != shown
    assert page.locator("#verdict").inner_text() != before
    check_same(page, small[0])
    page.keyboard.press("ArrowRight")
    check_same(page, small[0])
    page.keyboard.press("Tab")
    focused = "document.activeElement.id"
    assert page.evaluate(focused) == "budget-text"
    page.keyboard.type("0.2M")
    page.keyboard.press("Enter")
    assert check_same(page, small[0])["budget"] == 200_000
    page.focus("input[name=split]:checked")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.name") == "split"
    count = int(page.locator("#splits tr.chosen [data-n]").get_attribute("data-n"))
    page.focus("#networks")
    page.keyboard.press("ArrowRight")
    assert f"{count + 1} networks" in page.locator("#next-sentence").inner_text()


def test_a_budget_between_is_said_to_be(opened):
    page = opened()
    page.fill("#budget-text", "151234")
    page.keyboard.press("Enter")
    assert "the nearest" in page.locator("#budget-shown").inner_text()
    assert command_of(page)[4] == "151234"
    page.fill("#budget-text", "a lot")
    page.keyboard.press("Enter")
    assert "such as 2.5M" in page.locator("#budget-shown").inner_text()


def test_what_cannot_be_chosen_says_why(opened, tmp_path, monkeypatch):
    quicken(monkeypatch)
    store = make_store(tmp_path / "own", sketch=True, multiply_adds=None)
    page = opened(file=report(store, tmp_path / "own.html").file)
    assert page.locator("input[value=multiply-adds]").is_disabled()
    assert page.locator("input[value=accuracy]").is_disabled()
    reasons = page.locator("#reasons").inner_text()
    assert "does not say how many multiply-adds" in reasons
    assert "The accuracy of splits is not known" in reasons


def test_everything_that_acts_has_a_name(opened):
    page = opened()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, [role=region]")]
          .filter((each) => !each.getAttribute("aria-label") && !each.labels?.length)
          .map((each) => each.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("#verdict").get_attribute("aria-live") == "polite"
    assert page.locator("html").get_attribute("lang") == "en"


def test_without_scripts_the_tables_are_there(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#planner-live").is_hidden()
    assert page.get_by_text("The planner needs JavaScript").is_visible()
    assert page.locator("#tables table").count() == 3


def test_it_can_be_printed(opened):
    page = opened()
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(0, 0, 0)"
    assert page.locator(".controls").is_hidden()
    assert page.locator("#chart-curve svg").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_pools_alone_are_planned_by_their_curves(opened, tmp_path, monkeypatch):
    quicken(monkeypatch)
    store = make_store(tmp_path / "own", name=None, size=None)
    page = opened(380, file=report(store, tmp_path / "own.html").file)
    assert page.locator("#family option").count() == 4
    assert page.locator("#budget").is_hidden()
    assert page.locator("#chart-splits").is_hidden()
    page.select_option("#family", label="own: world-50000")
    sentence = page.locator("#next-sentence").inner_text()
    assert sentence.startswith("8 networks of world-50000 have CNLL")
    page.focus("#networks")
    page.keyboard.press("End")
    assert "forecast" in page.locator("#next-sentence").inner_text()
    data = json.loads(page.locator("#data").text_content())
    assert [each["units"] for each in data["planners"]] == [{}] * 4
    assert page.evaluate("document.documentElement.scrollWidth") == 380
