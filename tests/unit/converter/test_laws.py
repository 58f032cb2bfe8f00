"""Laws get their structure; what only mentions laws keeps its own."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import BodyMeta, ParsedDocument
from eval.corpus import EVALDATA
from eval.headings import LAWS, Case, gdpr, laws, scored, udhr
from kernel.media import HTML, MARKDOWN, PLAIN
from services.converter.domain import canonical
from services.indexer.blocks import blocks
from services.indexer.chunker import sections

TEXT = "The text of this part is long enough to count as text, and it ends with a full stop."


def body(text: str, media_type: str = PLAIN) -> str:
    meta = BodyMeta(title="T", language="en", media_type=media_type)
    return canonical(ParsedDocument(markdown=text, meta=meta), "x").body


def heads(text: str, media_type: str = PLAIN) -> list[str]:
    return re.findall(r"^#+ .*", body(text, media_type), re.M)


OWN = list(laws())


@pytest.mark.parametrize("case", OWN, ids=[f"{c.language} {c.name}" for c in OWN])
def test_every_heading_of_a_law_is_found_with_its_level(case: Case) -> None:
    found = scored(case)
    assert (found.right, found.given, found.levels) == (found.wanted,) * 3


def test_there_is_a_law_in_every_language() -> None:
    languages = {path.stem for path in LAWS.glob("*.md")}
    assert languages == {"bg", "de", "en", "hr", "mk", "ru", "sl", "sr-Cyrl", "sr-Latn"}


def law(*parts: str) -> str:
    """Headings as given, each line of text as a paragraph."""
    return "\n\n".join(parts)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (  # Croatia: the title stands above the number and may hold for several articles
            law("ZAKON O PARKOVIMA", "I. OPĆE ODREDBE", "Predmet Zakona", "Članak 1.",
                "(1) Ovim se Zakonom uređuje upravljanje parkovima.", "Pojmovi", "Članak 2.",
                "Park je zelena površina.", "Članak 3.", "Izrazi se odnose na oba roda.",
                "II. ZAVRŠNE ODREDBE", "Stupanje na snagu", "Članak 4.", "Stupa na snagu sutra."),
            ["# I. OPĆE ODREDBE", "## Predmet Zakona", "### Članak 1.", "## Pojmovi",
             "### Članak 2.", "### Članak 3.", "# II. ZAVRŠNE ODREDBE", "## Stupanje na snagu",
             "### Članak 4."],
        ),
        (  # Serbia, without blank lines
            "ЗАКОН О ПАРКОВИМА\nI. ОСНОВНЕ ОДРЕДБЕ\nПредмет закона\nЧлан 1.\nУређује се рад.\n"
            "Значење израза\nЧлан 2.\nПарк је зелена површина.\nII. ЗАВРШНА ОДРЕДБА\n"
            "Ступање на снагу\nЧлан 3.\nСтупа на снагу сутра.",
            ["# I. ОСНОВНЕ ОДРЕДБЕ", "## Предмет закона", "### Члан 1.", "## Значење израза",
             "### Члан 2.", "# II. ЗАВРШНА ОДРЕДБА", "## Ступање на снагу", "### Члан 3."],
        ),
        (  # Bulgaria: the text starts on the line of the number
            law("ЗАКОН ЗА ПАРКОВЕТЕ", "Глава първа", "ОБЩИ ПОЛОЖЕНИЯ",
                "Чл. 1. (1) Този закон урежда парковете.", "(2) Паркът е зелена площ.",
                "Чл. 2. Парковете са отворени по чл. 1.", "Чл. 2а. Кучетата се водят на повод.",
                "ЗАКЛЮЧИТЕЛНИ РАЗПОРЕДБИ", "§ 1. Законът влиза в сила утре.",
                "§ 2. Кметът го изпълнява.", "§ 3. Наредбата се отменя."),
            ["# Глава първа ОБЩИ ПОЛОЖЕНИЯ", "## Чл. 1.", "## Чл. 2.", "## Чл. 2а.",
             "# ЗАКЛЮЧИТЕЛНИ РАЗПОРЕДБИ", "## § 1.", "## § 2.", "## § 3."],
        ),
        (  # Austria: titles above, text on the line of the number
            law("Parkgesetz", "1. Abschnitt", "Allgemeines", "Geltungsbereich",
                "§ 1. (1) Dieses Gesetz gilt für Parks.", "Begriffe",
                "§ 2. Ein Park ist eine Grünfläche nach § 1 Abs. 1.", "Inkrafttreten",
                "§ 3. Es tritt morgen in Kraft."),
            ["# 1. Abschnitt Allgemeines", "## Geltungsbereich", "### § 1.", "## Begriffe",
             "### § 2.", "## Inkrafttreten", "### § 3."],
        ),
        (  # Russia: the section is above the chapter, the paragraph sign above the article
            law("РАЗДЕЛ I. ОБЩИЕ ПОЛОЖЕНИЯ", "Глава 1. Основы", "§ 1. Органы",
                "Статья 1. Директор", "Парком управляет директор.", "Статья 1.1. Заместитель",
                "Директор назначает заместителя.", "§ 2. Средства", "Статья 2. Источники",
                "Парки содержит город по статье 1."),
            ["# РАЗДЕЛ I. ОБЩИЕ ПОЛОЖЕНИЯ", "## Глава 1. Основы", "### § 1. Органы",
             "#### Статья 1. Директор", "#### Статья 1.1. Заместитель", "### § 2. Средства",
             "#### Статья 2. Источники"],
        ),
        (  # the Union's acts in Bulgarian: the section is below the chapter
            law("РЕГЛАМЕНТ ЗА ПАРКОВЕТЕ", "като имат предвид, че:", "(1) Парковете са важни.",
                "ДЯЛ I", "ОБЩИ РАЗПОРЕДБИ", "ГЛАВА I", "Обхват", "Раздел 1", "Предмет", "Член 1",
                "Цел", "1. Определят се правила.", "Член 2", "Термини", "Прилагат се термини.",
                "ГЛАВА II", "Достъп", "Член 3", "Свобода", "Всеки има достъп.",
                "ПРИЛОЖЕНИЕ I", "Списък", "Част А", "Големи паркове", "Тук са големите."),
            ["# като имат предвид, че:", "# ДЯЛ I ОБЩИ РАЗПОРЕДБИ", "## ГЛАВА I Обхват",
             "### Раздел 1 Предмет", "#### Член 1 Цел", "#### Член 2 Термини", "## ГЛАВА II Достъп",
             "### Член 3 Свобода", "# ПРИЛОЖЕНИЕ I Списък", "## Част А Големи паркове"],
        ),
        (  # America: number, title and text on one line
            law("Section 1. Short title. This Act is the Parks Act.",
                "Section 2. Definitions. A park is a green area.",
                "Section 3. Access. Every park is open."),
            ["# Section 1. Short title.", "# Section 2. Definitions.", "# Section 3. Access."],
        ),
        (  # a list of contents with the same headings comes first
            law("CONTENTS", "Part I General\nArticle 1 Subject\nPart II Parks\nArticle 2 Hours\n"
                "Article 3 Fees", "Part I General", "Article 1 Subject", TEXT, "Part II Parks",
                "Article 2 Hours", TEXT, "Article 3 Fees", TEXT),
            ["# Part I General", "## Article 1 Subject", "# Part II Parks", "## Article 2 Hours",
             "## Article 3 Fees"],
        ),
        (  # a number in the text that stands at the start of a cut line
            law("Article 1", "This is about all parks in the town and their trees, according to\n"
                "Article 7\nof the statute.", "Article 2", TEXT, "Article 3", TEXT),
            ["# Article 1", "# Article 2", "# Article 3"],
        ),
        (  # a law annexed to a resolution
            law("RESOLUTION", TEXT, "ANNEX", "Article 1", TEXT, "Article 2", TEXT, "Article 3",
                TEXT),
            ["# ANNEX", "## Article 1", "## Article 2", "## Article 3"],
        ),
    ],
    ids=["hr", "sr", "bg", "at", "ru", "eu-bg", "us", "contents", "wrapped", "annexed"],
)  # fmt: skip
def test_laws_of_other_shapes_get_their_headings(text: str, wanted: list[str]) -> None:
    assert heads(text) == wanted


def test_the_name_of_a_law_without_headings_is_its_title() -> None:
    text = law("Official Gazette 7", "ZAKON", "O PARKOVIMA", "Članak 1.", TEXT, "Članak 2.", TEXT,
               "Članak 3.", TEXT)  # fmt: skip
    meta = BodyMeta(title="", language="hr", media_type=PLAIN)
    assert canonical(ParsedDocument(markdown=text, meta=meta), "x").meta.title == (
        "ZAKON O PARKOVIMA"
    )


MANUAL = f"""# A manual

## Scope

Article 5 of the GDPR sets out the principles.

Article 6 shall apply in all other cases.

Art. 5 DSGVO

§ 5 Absatz 2 gilt entsprechend

Section 2 explains how.

## A quoted law

> Article 1
>
> Subject
>
> Article 2
>
> Scope
>
> Article 3
>
> {TEXT}

```text
Article 1
Text

Article 2
Text

Article 3
Text
```

| Article | Text |
|---------|------|
| Article 1 | a |
| Article 2 | b |
| Article 3 | c |

1. Article 1
2. Article 2
3. Article 3

- [Article 1](#a1)
- [Article 2](#a2)
- [Article 3](#a3)

    Article 1

    Article 2

    Article 3
"""


@pytest.mark.parametrize(
    "text",
    [
        MANUAL,
        law("# Book", "# Chapter 1", "## Part A", TEXT, "## Part B", TEXT, "# Chapter 2", "x\n"),
        f"# T\n\n## 1 One\n\n{TEXT}\n\n### 1.1 Sub\n\n{TEXT}\n\n## 2 Two\n\n{TEXT}\n",
        law("# T", "## Part 1: Theory", TEXT, "## Part 2: Practice", TEXT, "## Appendix A", "x\n"),
        "Part 1\nPart 2\nPart 3\n\nSection 1 30 minutes\nSection 2 5 minutes\nSection 3 9 hours\n",
        law(*(f"Article {n} of the Regulation says something. {TEXT}" for n in range(1, 6))) + "\n",
        law(*(f"§ {n} BDSG" for n in range(20, 26))) + "\n",
    ],
    ids=["manual", "book", "numbered", "parts", "schedule", "commentary", "list"],
)
def test_honest_markdown_is_left_alone(text: str) -> None:
    assert body(text, MARKDOWN) == text


def test_headings_on_one_level_get_levels_and_those_below_go_down() -> None:
    text = law("# Act", "## Chapter I", TEXT, "## Article 1", TEXT, "### Note", TEXT,
               "## Article 2", TEXT, "## Article 3", TEXT)  # fmt: skip
    assert heads(text, MARKDOWN) == [
        "# Act", "## Chapter I", "### Article 1", "#### Note", "### Article 2", "### Article 3",
    ]  # fmt: skip


def test_a_heading_right_below_an_article_is_its_title() -> None:
    text = law(
        "# Act", *(p for n in range(1, 4) for p in (f"## Article {n}", f"### Sub {n}", TEXT))
    )
    assert heads(text, MARKDOWN) == ["# Act", *(f"## Article {n} Sub {n}" for n in range(1, 4))]


def test_a_heavier_heading_right_below_each_article_is_its_title() -> None:
    text = law(
        "# Act", *(p for n in range(1, 4) for p in (f"### Article {n}", f"## Sub {n}", TEXT))
    )
    assert heads(text, MARKDOWN) == ["# Act", *(f"### Article {n} Sub {n}" for n in range(1, 4))]


def test_paragraphs_and_points_stay_text() -> None:
    text = law(*(p for n in range(1, 4) for p in (f"Article {n}", "1. One.", "(a) two;", "(2) T.")))
    assert heads(text) == ["# Article 1", "# Article 2", "# Article 3"]


WORDS = (
    ("Part", "Title", "Chapter", "Section", "Article", "Annex"),
    ("Teil", "Titel", "Kapitel", "Abschnitt", "§", "Anlage"),
    ("Часть", "Раздел", "Глава", "§", "Статья", "Приложение"),
    ("Dio", "Glava", "Poglavlje", "Odjeljak", "Članak", "Prilog"),
)
BETWEEN = (
    "", "(1) The text of a paragraph.", "Text", "- item", "The park is open, as said in", "12",
    "Article 7", "of the law.", "Page 3 of 9", "| a | b |", "```", "---", "> quote", "II. Roman",
    "I. ROMAN", "2 Method", "Preamble", "Whereas:", "Final provisions", "== x ==", "#### Deep",
    "    code", "Text\n===", "Subject", "## Subject", "(definitions)", "§ 5 Absatz 2 gilt",
    TEXT,
)  # fmt: skip


@st.composite
def odd_laws(draw: st.DrawFn) -> str:
    """Headings whose numbers count up, in every shape, with anything in between."""
    words = draw(st.sampled_from(WORDS))
    count = [0] * len(words)
    out: list[str] = []
    for kind in draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 4, 4, 4, 4, 5]), max_size=24)):
        count[kind] += 1
        mark = draw(st.sampled_from(["", "", "", "# ", "## ", "### ", "**"]))
        tail = draw(st.sampled_from(["", "", " Subject", ". Subject", ". (1) Text.", ".", "a"]))
        head = f"{mark}{words[kind]} {count[kind]}{tail}{'**' if mark == '**' else ''}"
        out += [head, *draw(st.lists(st.sampled_from(BETWEEN), max_size=3))]
    return draw(st.sampled_from(["\n", "\n\n"])).join(out)


@settings(max_examples=150, deadline=None)
@given(odd_laws(), st.sampled_from([PLAIN, MARKDOWN, HTML]))
def test_whatever_is_taken_for_a_law_loses_nothing_and_stays(text: str, media_type: str) -> None:
    once = body(text, media_type)
    assert body(once, media_type) == once
    words = re.findall(r"[^\W\d_]+", text)
    assert set(re.findall(r"[^\W\d_]+", once)) <= set(words)
    assert once.count("Absatz") == text.count("Absatz")


def test_headings_on_one_level_that_stand_in_an_annex_only() -> None:
    text = law("Article 1", TEXT, "Article 2", TEXT, "Article 3", TEXT, "# ANNEX",
               "## Part 1", "## Article 1", TEXT, "## Article 2", TEXT)  # fmt: skip
    assert heads(text, MARKDOWN)[3:] == [
        "## ANNEX", "### Part 1", "#### Article 1", "#### Article 2",
    ]  # fmt: skip


@cache
def regulation() -> list[Case]:
    return list(gdpr())


needs_data = pytest.mark.skipif(not EVALDATA.exists(), reason=f"{EVALDATA} is not there")


@needs_data
def test_the_regulation_gives_the_paths_of_its_articles() -> None:
    case = regulation()[0]
    meta = BodyMeta(title="", language="en", media_type=case.media_type)
    text = canonical(ParsedDocument(markdown=case.markdown, meta=meta), "x").body
    paths = {section.path for section in sections(blocks(text))}
    assert (
        "CHAPTER IV Controller and processor",
        "Section 2 Security of personal data",
        "Article 33 Notification of a personal data breach to the supervisory authority",
    ) in paths
    assert ("CHAPTER I General provisions", "Article 1 Subject-matter and objectives") in paths


@needs_data
def test_declarations_are_found_whole_in_every_language() -> None:
    for case in udhr():
        found = scored(case)
        assert (case.name, found.right, found.given, found.levels) == (case.name, 31, 31, 31)


@needs_data
def test_a_regulation_is_found_whole_from_its_page_and_from_its_text() -> None:
    for case in regulation():
        found = scored(case)
        assert (found.right, found.given, found.levels) == (found.wanted,) * 3
        assert found.wanted == 126
