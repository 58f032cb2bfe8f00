"""Forms of laws met in texts that nobody here wrote: each case is one cause of a wrong heading."""

import pytest

from contracts.artifacts import BodyMeta, ParsedDocument
from kernel.media import MARKDOWN, PLAIN
from services.converter.domain import canonical
from services.converter.headings import in_capitals
from services.converter.laws import chapters
from services.converter.laws.quoted import quoted_lines

TEXT = "Everything in this place is said in a few words that end with a full stop."
CLAUSE = "This clause is as long as they are in contracts. It says what both sides must do. " * 2
LONG = "Нарушение порядка " + "представления сведений о доходах и расходах " * 12


def heads(text: str, media_type: str = PLAIN) -> list[str]:
    meta = BodyMeta(title="", language="unknown", media_type=media_type)
    body = canonical(ParsedDocument(markdown=text, meta=meta), "x").body
    return [line for line in body.split("\n") if line.startswith("#")]


def law(*parts: str) -> str:
    return "\n\n".join(parts)


CASES = {
    "articles that an amendment quotes": (
        "§ 1. В чл. 3 думите отпадат.\n§ 2. Създават се чл. 7а и 8:\n„Чл. 7а. (1) Кметът решава.\n"
        "(2) Съветът „заседава“ тогава.\nЧл. 8. (1) Решението се обявява.“\n§ 3. Чл. 9 се отменя.\n"
        "§ 4. Чл. 10 се отменя.",
        ["# § 1.", "# § 2.", "# § 3.", "# § 4."],
    ),
    "an abbreviation is no title": (
        "§ 1. В чл. 1 думата отпада.\n§ 2. В чл. 2 думата отпада.\n§ 3. В чл. 3 думата отпада.",
        ["# § 1.", "# § 2.", "# § 3."],
    ),
    "a sentence that ends in a quotation": (
        "§ 1. В чл. 1 думата отпада.\n§ 2. В чл. 2 се създава ново: „Кметът решава.“\n"
        "§ 3. В чл. 3 думата отпада.\n§ 4. В чл. 4 думата отпада.",
        ["# § 1.", "# § 2.", "# § 3.", "# § 4."],
    ),
    "titles longer than a line, and repealed articles": (
        law("Статья 5.1. Обман", TEXT, "Статья 5.2. Утратила силу.", f"Статья 5.3. {LONG.strip()}",
            TEXT, "Статья 5.4. Подлог", TEXT, "Статья 5.5. Утрата", TEXT),
        ["# Статья 5.1. Обман", "# Статья 5.2. Утратила силу.", f"# Статья 5.3. {LONG.strip()}",
         "# Статья 5.4. Подлог", "# Статья 5.5. Утрата"],
    ),
    "a sentence about an article that comes elsewhere": (
        law("Статья 1. Обман", "Такая же мера, как и в\nСтатья 2. Закона говорится.",
            "Статья 2. Подлог", TEXT, "Статья 3. Утрата", TEXT, "Статья 4. Кража", TEXT),
        ["# Статья 1. Обман", "# Статья 2. Подлог", "# Статья 3. Утрата", "# Статья 4. Кража"],
    ),
    "what an annex belongs to": (
        law("Чл. 1. Парковете са отворени.", "Чл. 2. Входът е свободен.", "Чл. 3. Има такси.",
            "Приложение № 1 към чл. 3, ал. 4", TEXT),
        ["# Чл. 1.", "# Чл. 2.", "# Чл. 3.", "# Приложение № 1 към чл. 3, ал. 4"],
    ),
    "an annex with a small letter below": (
        "ГЛАВА 1\nОБЩЕЕ\n\n1. Парки открыты.\n\nГЛАВА 2\nВХОД\n\n2. Вход свободный.\n\nГЛАВА 3\n"
        "СБОРЫ\n\n3. Сборы платят.\n\nПриложение 1\nк Положению о парках\n\nСписок парков города.",
        ["# ГЛАВА 1 ОБЩЕЕ", "# ГЛАВА 2 ВХОД", "# ГЛАВА 3 СБОРЫ", "# Приложение 1"],
    ),
    "titles that end with a full stop": (
        law("Раздел 1 – Определения.", TEXT, "Раздел 2 – Объем лицензии.", TEXT,
            "Раздел 3 – Условия.", TEXT),
        ["# Раздел 1 – Определения.", "# Раздел 2 – Объем лицензии.", "# Раздел 3 – Условия."],
    ),
    "chapters with a figure, in capitals": (
        law("1. SPLOŠNE DOLOČBE", "1. člen", TEXT, "2. člen", TEXT, "2. SESTAVA SODIŠČA",
            "3. člen", TEXT, "4. člen", "1. Sodniki so trije.", "2. NAMESTNIKI sta dva."),
        ["# 1. SPLOŠNE DOLOČBE", "## 1. člen", "## 2. člen", "# 2. SESTAVA SODIŠČA",
         "## 3. člen", "## 4. člen"],
    ),
    "chapters told by their capitals alone": (
        law("ZAKON O PARKOVIMA", "Članak 1.", TEXT, "UPRAVLJANJE", "Tijela", "Članak 2.", TEXT,
            "NADZOR I UVID\nU RAD", "Inspekcija", "Članak 3.", TEXT, "Mjere", "Članak 4.", TEXT,
            "PREDSJEDNIK SABORA"),
        ["# Članak 1.", "# UPRAVLJANJE", "## Tijela", "### Članak 2.", "# NADZOR I UVID U RAD",
         "## Inspekcija", "### Članak 3.", "## Mjere", "### Članak 4."],
    ),
    "final provisions cut into two lines": (
        "§ 1. Парковете са отворени.\n§ 2. Входът е свободен.\nПРЕХОДНИ И ЗАКЛЮЧИТЕЛНИ\n"
        "РАЗПОРЕДБИ\n§ 3. Има такси.\n§ 4. Кметът решава.",
        ["# § 1.", "# § 2.", "# ПРЕХОДНИ И ЗАКЛЮЧИТЕЛНИ РАЗПОРЕДБИ", "## § 3.", "## § 4."],
    ),
    "titles in brackets where few articles have one": (
        law("1. člen\n(vsebina)", TEXT, "2. člen", TEXT, "3. člen", TEXT, "4. člen", TEXT,
            "5. člen\n(črtan)", "6. člen", TEXT),
        ["# 1. člen (vsebina)", "# 2. člen", "# 3. člen", "# 4. člen", "# 5. člen", "# 6. člen"],
    ),
    "a long title of a section without a blank line below": (
        "Чл. 1. Парковете са отворени.\nРаздел І\nВзаимоотношения на държавния бюджет с бюджетите "
        "на всички общини и на държавното осигуряване\nЧл. 2. (1) Общините плащат.\nРаздел ІІ\n"
        "Такси\nЧл. 3. Има такси.\nЧл. 4. Кметът решава.",
        ["# Чл. 1.", "# Раздел І Взаимоотношения на държавния бюджет с бюджетите на всички общини "
         "и на държавното осигуряване", "## Чл. 2.", "# Раздел ІІ Такси", "## Чл. 3.",
         "## Чл. 4."],
    ),
    "a title that goes on with a small letter": (
        "Глава 7. Нарушения в области охраны\nсобственности\nСтатья 7.1. Захват\nЗахват земли "
        "влечет штраф.\n\nСтатья 7.2. Порча\nПорча земли влечет штраф.\n\nСтатья 7.3. Кража\n"
        "Кража влечет штраф.",
        ["# Глава 7. Нарушения в области охраны собственности", "## Статья 7.1. Захват",
         "## Статья 7.2. Порча", "## Статья 7.3. Кража"],
    ),
    "numbered titles below chapters": (
        law("II JEDINICE", "1. Osnivanje", "Član 1", TEXT, "2. Status", "2.1. Opština", "Član 2",
            TEXT, "2.2. Grad", "Član 3", TEXT, "3. odluku donosi skupština", "III ORGANI",
            "Član 4", TEXT),
        ["# II JEDINICE", "## 1. Osnivanje", "### Član 1", "## 2. Status", "### 2.1. Opština",
         "#### Član 2", "### 2.2. Grad", "#### Član 3", "# III ORGANI", "## Član 4"],
    ),
    "an item of a list above an article": (
        law("Article 1 Fees", "The fees are for", "1. Dogs", "2. Horses", "Article 2 Hours", TEXT,
            "Article 3 Rules", TEXT),
        ["# Article 1 Fees", "# Article 2 Hours", "# Article 3 Rules"],
    ),
    "items of a list that name articles": (
        law("§ 1 Gebühren", "Es gelten:", "1.  Artikel 9 Abs. 1, Artikel 24 und",
            "2.  Artikel 6 Abs. 2", "§ 2 Zeiten", TEXT, "§ 3 Regeln", TEXT, "Es sind anzugeben:",
            "1.  Gefahr im Verzug ist oder", "2.  über Fragen im Gesetz"),
        ["# § 1 Gebühren", "# § 2 Zeiten", "# § 3 Regeln"],
    ),
    "a label amid a sentence, where a number is missing": (
        law("Статья 1. Обман", TEXT, "Статья 3. Подлог", TEXT + "\nСтатья 4.\nоб этом говорит.",
            "Статья 5. Кража", TEXT, "Статья 6. Утрата", TEXT),
        ["# Статья 1. Обман", "# Статья 3. Подлог", "# Статья 5. Кража", "# Статья 6. Утрата"],
    ),
    "a line above that ends nothing": (
        "\n".join(f"References from articles and from practice and from procedures Notes\n"
                  f"Чл. {n}. (1) Парковете са отворени {'всеки ден от годината ' * 9}.\n"
                  "(2) Входът е свободен." for n in range(1, 5)),
        ["# Чл. 1.", "# Чл. 2.", "# Чл. 3.", "# Чл. 4."],
    ),
    "a table of figures above an article": (
        "".join(f"Чл. {n}. (1) Приема бюджета.\nПРИХОДИ\nданъци, в това\n7246,5\n"
                for n in (1, 2, 3)),
        ["# Чл. 1.", "# Чл. 2.", "# Чл. 3."],
    ),
    "a blank before the full stop of a number": (
        "Чл. 1 . (1) Кметът решава.\nЧл. 2 . (1) Съветът заседава.\nЧл. 3 . Има такси.",
        ["# Чл. 1 .", "# Чл. 2 .", "# Чл. 3 ."],
    ),
    "clauses of a contract": (
        law("1. Definitions", CLAUSE, "**2. Fair use.** " + CLAUSE, "3. Licence. " + CLAUSE,
            "4. Restrictions.", CLAUSE, "**5. Term**", CLAUSE),
        ["# 1. Definitions", "# 2. Fair use.", "# 3. Licence.", "# 4. Restrictions.",
         "# 5. Term"],
    ),
    "steps that are no clauses": (
        law("1. Open the box. " + CLAUSE, "2. Take it out. " + CLAUSE, "3. Close it. " + CLAUSE,
            "4. Send it back. " + CLAUSE),
        [],
    ),
}  # fmt: skip
MARKED = {
    "titles above articles are above them, whatever their type says": (
        law("# Law", *(part for n in range(1, 5) for part in (f"### Topic {n}a",
                                                              f"## Article {n}", TEXT))),
        [f"{mark} {name}" for n in range(1, 5)
         for mark, name in (("##", f"Topic {n}a"), ("###", f"Article {n}"))],
    ),
    "a heading that took the number of its article along": (
        law("### Scope Article 1", TEXT, "### Terms Article 2", TEXT, "### Fees Article 3", TEXT,
            "### As said in Article 3", TEXT),
        ["### Scope", "#### Article 1", "### Terms", "#### Article 2", "### Fees", "#### Article 3",
         "#### As said in Article 3"],
    ),
    "a part whose title is in larger type": (
        law("##### PART ONE", "### GENERAL", "###### Chapter I", "### Principles", "#### Scope",
            "##### Article 1", TEXT, "#### Terms", "##### Article 2", TEXT, "###### Chapter II",
            "### Organs", "#### Mayor", "##### Article 3", TEXT),
        ["# PART ONE GENERAL", "## Chapter I Principles", "### Scope", "#### Article 1",
         "### Terms", "#### Article 2", "## Chapter II Organs", "### Mayor", "#### Article 3"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (("Tenor", TEXT, "Tatbestand", TEXT, "Entscheidungsgründe", TEXT),
         ["# Tenor", "# Tatbestand", "# Entscheidungsgründe"]),
        (("УСТАНОВИЛ:", TEXT, "РЕШИЛ:", TEXT), ["# УСТАНОВИЛ:", "# РЕШИЛ:"]),
        (("P R E S U D U", TEXT, "O b r a z l o ž e n j e", TEXT),
         ["# P R E S U D U", "# O b r a z l o ž e n j e"]),
        (("IZREK", TEXT, "Obrazložitev", TEXT), ["# IZREK", "# Obrazložitev"]),
        (("Gründe", TEXT, TEXT), []),
        (("The tenor", "Tenor sang", TEXT, "Gründe gibt es viele", TEXT), []),
    ],
)  # fmt: skip
def test_parts_of_a_decision_are_headings(parts: tuple[str, ...], wanted: list[str]) -> None:
    assert heads(law(*parts)) == wanted


def test_thousands_of_lines_in_capitals_take_no_time_by_the_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def watched(text: str) -> bool:
        seen.append(text)
        return in_capitals(text)

    monkeypatch.setattr(chapters, "in_capitals", watched)
    heads(law("Article 1", TEXT, "Article 2", TEXT, "Article 3", TEXT) + "\nCAPITALS" * 2000)
    assert 2000 <= len(seen) < 40_000


def test_titles_of_a_manual_are_told_by_the_signs_below() -> None:
    text = (
        "Manual\n******\n\nIt is short.\n\n1. About\n========\n\n" + TEXT + "\n\n1.1. Scope\n"
        "----------\n\n" + TEXT + "\n\nNotes\n=====\n\n" + TEXT + "\n\nsome text\n***\n"
    )
    assert heads(text) == ["# Manual", "## 1. About", "### 1.1. Scope", "## Notes"]


def test_a_title_between_two_rows_is_above_one_with_a_row_below() -> None:
    text = f"====\nBook\n====\n\n{TEXT}\n\nPart\n~~~~\n\n{TEXT}\n\nChap\n====\n\n{TEXT}"
    assert heads(text) == ["# Book", "## Part", "### Chap"]


@pytest.mark.parametrize(("text", "wanted"), MARKED.values(), ids=MARKED.keys())
def test_headings_of_a_law_get_the_levels_of_its_parts(text: str, wanted: list[str]) -> None:
    assert [head for head in heads(text, MARKDOWN) if head != "# Law"] == wanted


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES.keys())
def test_a_form_of_law_gets_its_headings(text: str, wanted: list[str]) -> None:
    assert heads(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("is replaced by:\n„Article 1\nText.“\nMore", {1, 2}),
        ("se mijenja i glasi:\n»(1) Tekst.\n(2) Tekst.«.\nViše", {1, 2}),
        ("в следующей редакции:\n«Статья 5. «Парки»\nТекст.»;\nБольше", {1, 2}),
        ("is inserted:\n‘Article 5a\nThe Union’s rules.\nText.’\nMore", {1, 2, 3}),
        ('lautet:\n"§ 1\nText"\nMehr', {1, 2}),
        ("on one line:\n„Article 1“\nMore", set()),
        ("never closed:\n„Article 1\nText.", set()),
        ("no colon\n„Article 1\nText.“", set()),
    ],
)
def test_lines_of_a_quoted_law_are_told(text: str, wanted: set[int]) -> None:
    assert quoted_lines(text.split("\n")) == wanted
