"""Pages: the sections put together, with the style, the data and the scripts."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Any

import ensize
from ensize.claims import check_claims
from ensize.reports import sections, tables
from ensize.reports.answers import answer_of
from ensize.reports.gallery import pictures_of
from ensize.reports.libraries import integrity, libraries, own
from ensize.reports.markup import data_block, element, escaped, joined
from ensize.reports.planner import planner_of
from ensize.reports.words import THIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.predictions import Progress
    from ensize.reports.studies import Study

_NO_FIGURES = (
    "There are no figures here, because Matplotlib is not installed; install"
    " ensize[figures] and write the report again."
)


@dataclass(frozen=True)
class Page:
    """A page, its answers by the names of the studies, and its warnings."""

    html: str
    headlines: dict[str, str]
    warnings: tuple[str, ...]


def page_of(
    studies: Sequence[Study],
    options: dict[str, Any],
    *,
    drawn: bool,
    progress: Progress | None = None,
) -> Page:
    """Write the page on some studies, with figures if they can be drawn."""
    planners = [
        [
            planner_of(
                plane,
                within=options["within"],
                budgets=options["budgets"],
                progress=progress,
            )
            for plane in study.planes
        ]
        for study in studies
    ]
    answers = [answer_of(*each) for each in zip(studies, planners, strict=True)]
    evidence = [study.evidence for study in studies]
    pictures = pictures_of(evidence, progress=progress) if drawn else ()
    lacking = () if drawn else (_NO_FIGURES,)
    asked = check_claims(evidence, progress=progress).answers
    title = options["title"] or ", ".join(study.name for study in studies)
    data = [
        {**_named(study, k), **planner}
        for study, found in zip(studies, planners, strict=True)
        for k, planner in enumerate(found)
    ]
    parts = {
        "planner": ("Planner", sections.planner(data)),
        "figures": ("Figures", sections.gallery(pictures, lacking)),
        "claims": ("Claims", sections.claims(asked)),
        "tables": ("Tables", tables.numbers(studies, planners)),
        "recipe": (
            "Recipe",
            tables.origins(studies, ensize.__version__, _shaping(options)),
        ),
    }
    linked = [(name, called) for name, (called, part) in parts.items() if part]
    scripts = [*(each.source for each in libraries()), own("page.js")]
    body = joined(
        sections.header(title, list(zip(studies, answers, strict=True)), linked),
        element("main", *(part for _, part in parts.values())),
        tables.footer(ensize.__version__),
    )
    html = Template(own("page.html")).substitute(
        policy=escaped(_policy(scripts)),
        version=escaped(ensize.__version__),
        title=escaped(f"{title}: how many networks, and how large?"),
        style=own("page.css"),
        body=body,
        data=data_block("data", {"planners": data}),
        scripts="\n".join(f"<script>{each}</script>" for each in scripts),
    )
    warned = (each for answer in answers for each in answer.warnings)
    return Page(
        html,
        {
            study.name: answer.headline.replace(THIN, " ")
            for study, answer in zip(studies, answers, strict=True)
        },
        tuple(dict.fromkeys([*warned, *lacking])),
    )


def _policy(scripts: Sequence[str]) -> str:
    """Forbid all but what stands in the page; of scripts, all but these."""
    allowed = " ".join(integrity(each) for each in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _named(study: Study, k: int) -> dict[str, Any]:
    """Say whose planner it is, on the page and on a terminal."""
    plane = study.planes[k]
    name = study.name if study.whole else f"{study.name}: {plane.names[0]}"
    family = plane.pools[0].pool.family if study.several else None
    return {"name": name, "folder": study.folder, "family": family}


def _shaping(options: dict[str, Any]) -> str:
    """Say which choices shaped the page."""
    budgets = ", ".join(f"{each:,.10g}" for each in options["budgets"])
    asked = f", budgets asked for: {budgets}" if budgets else ""
    return f"splits within {options['within']} of the best are as good{asked}"
