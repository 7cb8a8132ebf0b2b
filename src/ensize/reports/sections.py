"""Sections: the parts of the page as markup, in the order in which they stand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ensize.planes import COSTS, SCORES
from ensize.reports.markup import Markup, element, formulas, joined
from ensize.reports.words import NAMES, UNITS, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.claims import Answer as Asked
    from ensize.reports.answers import Answer
    from ensize.reports.gallery import Picture
    from ensize.reports.studies import Study


def section(name: str, title: str, *children: object) -> Markup:
    """Write a section with a heading that the table of contents points to."""
    heading = element("h2", title, id=f"{name}-title")
    return element(
        "section", heading, *children, id=name, aria_labelledby=f"{name}-title"
    )


def header(
    title: str,
    answered: Sequence[tuple[Study, Answer]],
    parts: Sequence[tuple[str, str]],
) -> Markup:
    """Say what the page is, answer, and list the sections."""
    links = (element("a", called, href=f"#{name}") for name, called in parts)
    return element(
        "header",
        element("h1", title),
        *(answer(study, said, alone=study.name == title) for study, said in answered),
        element("nav", *links, aria_label="Contents"),
        class_="several" if len(answered) > 1 else None,
    )


def answer(study: Study, said: Answer, *, alone: bool) -> Markup:
    """Write the answer for one study, whose name stands above it where it is alone."""
    found = study.evidence
    counts = f"{len(found.pools)} pool{'s' * (len(found.pools) != 1)}"
    total = sum(each.networks for each in study.made)
    of = f"{counts}, {total:,} networks, {found.objects:,} test objects"
    return element(
        "section",
        element("p", of if alone else f"{study.name}: {of}", class_="of"),
        element("p", said.headline, class_="headline"),
        element("p", said.because),
        element("ul", *(element("li", each) for each in said.facts), class_="facts")
        if said.facts
        else None,
        _warned(said.warnings),
        class_="answer",
    )


def _warned(warnings: Sequence[str]) -> Markup | None:
    """Write what to be wary of: what fits on few lines in full, more on demand."""
    if not warnings:
        return None
    counted = f"{len(warnings)} thing{'s' * (len(warnings) != 1)} to know before"
    notes = (element("li", sentence(each)) for each in warnings)
    return element(
        "details",
        element("summary", f"{counted} you rely on this"),
        element("ul", *notes, class_="facts"),
        class_="warned",
        open=len(warnings) <= 2,
    )


def planner(planners: Sequence[dict[str, Any]]) -> Markup:
    """Write the planner's frame, which the page's script fills."""
    return section(
        "planner",
        "Planner",
        # Hidden by the script when it runs.
        element(
            "p",
            "The planner needs JavaScript. The tables below hold the same numbers for"
            " the sizes of the networks at hand.",
            class_="note",
            id="unplanned",
        ),
        element(
            "div",
            _controls(planners),
            element(
                "div",
                element("p", class_="headline"),
                element("p"),
                class_="verdict",
                id="verdict",
                aria_live="polite",
            ),
            element(
                "div",
                element("div", _chart("splits"), _chart("curve"), class_="charts"),
                _next(),
                _splits(),
                id="planned",
            ),
            class_="planner",
            id="planner-live",
            hidden=True,
        ),
    )


def _controls(planners: Sequence[dict[str, Any]]) -> Markup:
    """Write what is chosen: the family, the unit, the score and the budget."""
    names = (
        element("option", each["name"], value=str(k)) for k, each in enumerate(planners)
    )
    family = element(
        "div",
        element("label", "Networks of", for_="family", class_="label"),
        element("select", *names, id="family"),
    )
    return element(
        "div",
        family if len(planners) > 1 else None,
        _choices("unit", "Budget in", {each: each for each in COSTS}, UNITS),
        _choices("score", "Score", {each: NAMES[each] for each in SCORES}, {}),
        element("p", class_="note wide splitting", id="reasons"),
        element(
            "div",
            element("label", "Budget", for_="budget", class_="label"),
            element(
                "div",
                element("input", type="range", id="budget", min="0", step="1"),
                element(
                    "input",
                    type="text",
                    id="budget-text",
                    aria_label="Budget, as a number such as 2.5M",
                    autocomplete="off",
                    spellcheck="false",
                ),
                element("span", id="budget-shown", class_="note", role="status"),
                class_="budget",
            ),
            class_="wide splitting",
        ),
        class_="controls",
    )


def _choices(
    name: str, title: str, choices: dict[str, str], explained: dict[str, str]
) -> Markup:
    labels = (
        element(
            "label",
            element("input", type="radio", name=name, value=value),
            shown,
            title=explained.get(value),
        )
        for value, shown in choices.items()
    )
    return element(
        "fieldset",
        element("legend", title),
        element("div", *labels, class_="choices"),
        class_="splitting",
    )


def _chart(name: str) -> Markup:
    titles = {"splits": "The splits of this budget", "curve": "More networks"}
    return element(
        "figure",
        element("figcaption", element("b", titles[name], id=f"title-{name}")),
        element("div", id=f"chart-{name}", class_="drawn"),
        element("figcaption", id=f"legend-{name}"),
        class_="chart splitting" if name == "splits" else "chart",
    )


def _next() -> Markup:
    """Write what tells of the next network."""
    return element(
        "div",
        element("p", id="next-sentence", aria_live="polite"),
        element(
            "div",
            element("label", "Networks", for_="networks"),
            element("input", type="range", id="networks", min="0", step="1"),
            element("span", id="networks-shown", class_="note"),
            class_="budget",
        ),
        class_="next",
        id="next",
    )


def _splits() -> Markup:
    """Write the table of splits, empty, and the command that prints the same."""
    heads = (
        element("th", element("span", "shown in the charts", class_="unseen")),
        element("th", "n", scope="col"),
        element("th", "networks of", scope="col", class_="words"),
        element("th", "size", scope="col", class_="less"),
        element("th", id="total-name", scope="col", class_="less"),
        element("th", id="score-name", scope="col"),
        element("th", "90 % interval", scope="col"),
        element("th", "best with", scope="col"),
        element("th", "source", scope="col", class_="words less"),
        element("th", scope="col", class_="words", aria_label="verdict"),
    )
    table = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", id="splits"),
    )
    return element(
        "div",
        scrolled(table, "The splits of this budget"),
        element("p", "The same numbers on a terminal:", class_="note"),
        element("pre", element("code", id="command"), tabindex="0"),
        class_="splitting",
    )


def scrolled(table: Markup, label: str) -> Markup:
    """Let a wide table scroll by itself, by keyboard too."""
    return element(
        "div", table, class_="scroll", tabindex="0", role="region", aria_label=label
    )


def table(
    caption: str,
    columns: Sequence[str | tuple[str, str]],
    rows: Sequence[Sequence[object]],
) -> Markup:
    """Write a table; a column is a title, or a title and its class."""
    titled = [(each, None) if isinstance(each, str) else each for each in columns]
    heads = (
        element("th", title, scope="col", class_=class_) for title, class_ in titled
    )
    body = (
        element(
            "tr",
            *(
                element("td", cell, class_=class_)
                for cell, (_, class_) in zip(row, titled, strict=True)
            ),
        )
        for row in rows
    )
    drawn = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *body),
    )
    # Outside, so that the caption stays when the table scrolls.
    return element(
        "div",
        element("p", caption, class_="note"),
        scrolled(drawn, caption),
        class_="captioned",
    )


def gallery(pictures: Sequence[Picture], warnings: Sequence[str]) -> Markup | None:
    """Show the figures, and say which there are not."""
    drawn = [each for each in pictures if each.source is not None]
    lacking = [each for each in pictures if each.source is None]
    if not pictures and not warnings:
        return None
    shown = []
    several = len({each.of for each in pictures if each.of is not None}) > 1
    groups = dict.fromkeys(each.of if several else None for each in drawn)
    for of in groups:
        figures = [_figure(each) for each in drawn if not several or each.of == of]
        shown += [element("h3", of or "All together")] if several else []
        shown.append(element("div", *figures, class_="gallery"))
    missing = (
        element(
            "li",
            element("b", formulas(each.title)),
            f" of {each.of}" if each.of else None,
            f": {each.caption}",
        )
        for each in lacking
    )
    return section(
        "figures",
        "Figures",
        *(element("p", each, class_="note") for each in warnings),
        *shown,
        element(
            "details",
            element("summary", f"{len(lacking)} figures could not be drawn, and why"),
            element("ul", *missing, class_="facts"),
        )
        if lacking
        else None,
    )


def _figure(each: Picture) -> Markup:
    frame = element("img", src=each.source, alt=each.title, loading="lazy")
    return element(
        "figure",
        element("div", frame, class_="frame"),
        element(
            "figcaption",
            element("b", formulas(f"{each.title}. ")),
            formulas(each.caption),
        ),
        class_="drawn",
        id=f"figure-{each.name}" if each.of is None else None,
    )


# The verdicts of claims in the page's colors, and in the order in which they count.
_VERDICTS = {"holds": "holds", "does not hold": "not", "cannot be said": "unsaid"}


def claims(asked: Sequence[Asked]) -> Markup:
    """Show what the stores say of the paper's claims, one a row."""
    said = [each.verdict for each in asked]
    counts = ", ".join(f"{said.count(each)} {each}" for each in _VERDICTS)
    parts = []
    stores = list(dict.fromkeys(each.store for each in asked))
    for store in stores:
        parts += [element("h3", store)] if len(stores) > 1 else []
        rows = [_claim(each) for each in asked if each.store == store]
        body = element("table", _CLAIM_HEADS, element("tbody", *rows), class_="claims")
        parts.append(scrolled(body, f"Claims, asked of {store}"))
    return section(
        "claims",
        "Claims",
        element(
            "p",
            "What the paper says of deep ensembles, asked of these networks:"
            f" {counts}. A claim holds where the 90\u202f% interval of its number lies"
            " between the bounds, and does not where it lies outside.",
            class_="note",
        ),
        *parts,
    )


_CLAIM_HEADS = element(
    "thead",
    element(
        "tr",
        element("th", "claim", scope="col", class_="words"),
        element("th", "verdict", scope="col", class_="words"),
        element("th", "number", scope="col"),
    ),
)


def _claim(each: Asked) -> Markup:
    number = None
    if math.isfinite(each.value):
        number = joined(
            element("b", f"{each.value:.3g}"),
            element("br"),
            f"{each.low:.3g} to {each.high:.3g}",
            element("br"),
            element("small", each.bounds),
        )
    return element(
        "tr",
        element(
            "td",
            element("b", formulas(sentence(each.claim))),
            element("br"),
            element("small", formulas(sentence(each.sentence))),
            class_="long",
        ),
        element("td", each.verdict, class_=f"words {_VERDICTS[each.verdict]}"),
        element("td", number),
    )
