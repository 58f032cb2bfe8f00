"""Names in code that look like other names are found; prose with mixed scripts is left alone."""

import pytest

from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import default_ruleset

PROSE = "The committee met in spring and agreed on the plan.\n\n"


def judge(text: str) -> ScanResult:
    return scan(text, (), default_ruleset())


@pytest.mark.parametrize(
    "code",
    [
        "def chесk(user):\n    return True\n",
        "if (isАdmin(user)) {",
        "const tоken = load();",
        "ѕtart:",
        "```\nrun chесk now\n```",
        "print(օpen)",
        "x = Μap()",
    ],
)
def test_a_lookalike_letter_in_a_name_of_code_goes_to_review(code: str) -> None:
    result = judge(f"{PROSE}{code}\n")
    assert result.verdict == "quarantine"
    assert "unicode.lookalikes-in-code" in {f.rule for f in result.findings}


@pytest.mark.parametrize("character", ["\u200b", "\u200c", "\u200d", "\u2060", "\u2063", "\u180e"])
def test_a_name_that_differs_by_an_invisible_character_goes_to_review(character: str) -> None:
    code = f"def allowed():\n    pass\n\ndef allo{character}wed():\n    pass\n"
    result = judge(PROSE + code)
    assert result.verdict == "quarantine"
    hit = next(f for f in result.findings if f.rule == "unicode.invisible-in-code")
    assert (PROSE + code).encode()[hit.byte_start : hit.byte_end].decode() == character


@pytest.mark.parametrize(
    "text",
    [
        "Смотрите наш YouTube-канал и скачайте PDF-файл на 3D-принтер.",
        "Позовите IT-специјалиста; YouTubeа и Gitа има доста (Facebookа, Twitterа).",
        "Cкан плохо прочитан: cлово, мeсто, вpемя, дoм и opтография; всё это проза.",
        "The sсan has one bad letter.",
        "Функция ПолучитьHTML(ТекстJSON) возвращает строку;",
        "rate = dρ/dt + νmax * Δx;",
        "می\u200cخواهم به خانه بروم; می\u200cشود (نامه\u200cها)",
        "क्\u200dष and र\u200dय and 👨\u200d👩\u200d👧 = {family}",
        "Donau\u00addampf\u00adschiff(fahrt);",
        "\ufeffdef main():\n    pass",
        "getAnnotation\u200b(Class a)\ngetDeclared\u200bAnnotation(Class b)\n",
    ],
)
def test_honest_words_of_two_scripts_or_with_joiners_are_clean(text: str) -> None:
    result = judge(text)
    assert result.verdict == "clean"
    assert {f.severity for f in result.findings} <= {"low"}


def test_hints_for_line_breaks_in_many_names_are_no_disguise() -> None:
    names = ["loadAll", "saveAll", "readOne", "dropOne", "moveAll", "copyOne", "findAll"]
    rows = "\n".join(f"{n}(int a); see {n[:4]}\u200b{n[4:]}(int a);" for n in names)
    assert judge(rows).verdict == "clean"
    assert judge(rows.split("\n")[0]).verdict == "quarantine"


def test_many_lookalikes_close_together_go_to_review_without_a_phrase() -> None:
    few = "A gооd day and a bаd night."
    assert judge(PROSE + few).verdict == "clean"
    assert judge(PROSE + "Thе gоod tеa is rеady, сome in.").verdict == "quarantine"
