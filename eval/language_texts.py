"""Native running text of Croatian and Serbian for training, and its licences.

The texts are in public repositories on GitHub. `TEXTS` names them; each is looked for under the
folder given as `--texts`, as a bare clone or a work tree in `OWNER+NAME`, `OWNER+NAME/repo` or
`OWNER+NAME/repo/.git`. Nothing of them is kept here but the weights that training derives.

Croatian and Serbian have the same genres, so that the subject is no signal: news and web, talk
(tweets, comments, everyday sentences), novels, laws, and lessons, of which many are the same in
both. What only one of them has (pages of a faculty, school questions) made that subject a sign of
the language, and is left out. Held apart to choose by is an encyclopaedic text as well, the same
sentences in both.
Serbian in Cyrillic letters is transliterated, which is exact in this direction. Left out on
purpose: parliaments, UD test files and everything else of the check (`eval/language.py`), Bible
translations (the Serbian one is ijekavian) and text that machines wrote without a source. Texts
whose licence forbids commercial use, or that state none, are left out on purpose as well.

| repository | language, genre | licence |
|---|---|---|
| clarinsi/babushka-bench | hr: hr500k train; sr: SETimes.SR; both: tweets | CC BY-SA 4.0 * |
| COST-ELTeC/ELTeC-hrv, ELTeC-srp | hr, sr: novels of 1850 to 1920 | CC BY 4.0 * |
| microsoft/IoT-For-Beginners, edgeai-for-beginners | hr, sr: lessons, translated | MIT |
| microsoft/Security-101 | hr, sr: lessons, translated | CC0 |
| dariofugale95/LanguageIdentificationKeras | hr: Tatoeba sentences | CC BY 2.0 FR |
| pakizoricc/Sistem-za-prevodjenje | sr: Tatoeba sentences | CC BY 2.0 FR |
| Petlja/os3_dig_svet, os7_inf_prog, gim1_rac_ikt | sr: school books | CC BY 4.0 |
| microsoft/AZD-for-beginners | hr, sr: lessons, translated | MIT |
| Ansvar-Systems/Croatian-law-mcp, Serbian-law-mcp | hr, sr: laws | free: official texts ** |
| dadelani/sib-200 | hr, sr: encyclopaedia (FLORES), the same sentences in both | CC BY-SA 4.0 * |
| hermitdave/FrequencyWords | hr, sr: word frequencies of film subtitles | CC BY-SA 4.0 |
| unicode-org/unilex | hr, sr: word frequencies of news on the web | Unicode-3.0 |
| UniversalDependencies/UD_Croatian-SET, UD_Serbian-SET | dev files alone | CC BY-SA 4.0 |
| MicrosoftTranslator/NTREX | hr, sr, bs: news, the same sentences in all | CC BY-SA 4.0 |
| clarinsi/benchich | hr, sr: COPA, everyday sentences | CC BY-SA 4.0 * |

*: as its publisher states, not in the repository. Read where stated: SETimes.SR (its own
repository), ELTeC-srp (its README; the novels themselves are in the public domain), COPA-SR (its
data set card). The sentences of Tatoeba are under Tatoeba's licence, which those who copied them
do not repeat. The sentences of sib-200 are those of FLORES-200, under its licence.

**: laws are no subject of copyright in Croatia and Serbia (official texts); the repositories, which
say so too, are under the Apache licence.
"""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eval.language_sources import Texts, latin


@dataclass(frozen=True)
class Source:
    """Files of a repository in one language. `files`: pattern of whole paths; `genre`: see above;
    `kind`: how a file is read; `held`: kept apart to choose the model by."""

    repository: str
    language: str
    genre: str
    files: str
    kind: str = "markup"
    held: bool = False


_SCHOOL = ("os3_dig_svet", "os7_inf_prog", "gim1_rac_ikt")
_HELD_LAWS = {"hr": "01|05|10", "sr": r"0\d[37]5"}
_LAWS = {"hr": r"\d\d", "sr": r"0\d\d0|0171|0321|0767"}
"""Numbers of the files: of Serbian laws, which are 800, a part; among them those on the subjects of
the few Croatian ones."""
_HELD_NOVELS = r"(?:HR037|HR015|SRP18690_\w+|SRP18520_\w+)"
_UD = "UniversalDependencies/UD"
_BABUSHKA, _NTREX = "clarinsi/babushka-bench", "MicrosoftTranslator/NTREX"


def _law(language: str, held: bool) -> str:
    """Pattern of the files that are held apart, or of the others."""
    if held:
        return rf"data/seed/(?:{_HELD_LAWS[language]})-.*\.json"
    return rf"data/seed/(?!{_HELD_LAWS[language]})(?:{_LAWS[language]})-.*\.json"


TEXTS = (
    Source(_BABUSHKA, "hr", "news", r"datasets/hr/hr500k/train\.txt", "lines"),
    Source(_BABUSHKA, "hr", "talk", r"datasets/hr/reldi-hr/train_norm\.txt", "lines"),
    Source("COST-ELTeC/ELTeC-hrv", "hr", "fiction", rf"level1/(?!{_HELD_NOVELS}).*\.xml", "tei"),
    Source(_BABUSHKA, "sr", "news", r"datasets/sr/SETimes\.SR/train\.txt", "lines"),
    Source(_BABUSHKA, "sr", "talk", r"datasets/sr/reldi-sr/train_norm\.txt", "lines"),
    Source("COST-ELTeC/ELTeC-srp", "sr", "fiction", rf"level1/(?!{_HELD_NOVELS}).*\.xml", "tei"),
    Source("dariofugale95/LanguageIdentificationKeras", "hr", "talk", r"data/hrv\.txt", "second"),
    Source("pakizoricc/Sistem-za-prevodjenje", "sr", "talk", r"srp\.txt", "second"),
    *(Source(f"Petlja/{name}", "sr", "lessons", r"_sources/.*\.rst") for name in _SCHOOL),
    *(
        Source(f"microsoft/{name}", language, "lessons", rf"translations/{language}/.*\.md")
        for name in ("IoT-For-Beginners", "edgeai-for-beginners", "AZD-for-beginners")
        for language in ("hr", "sr")
    ),
    *(
        Source(f"Ansvar-Systems/{name}-law-mcp", language, "law", _law(language, held), "law", held)
        for language, name in (("hr", "Croatian"), ("sr", "Serbian"))
        for held in (False, True)
    ),
    *(
        Source("dadelani/sib-200", language, "encyclopaedia", rf"data/annotated/{code}/.*\.tsv",
               "third", held=True)
        for language, code in (("hr", "hrv_Latn"), ("sr", "srp_Cyrl"))
    ),
    Source(_NTREX, "hr", "news", r".*ref\.hrv\.txt", "lines", held=True),
    Source(_NTREX, "sr", "news", r".*ref\.srp-(?:Latn|Cyrl)\.txt", "lines", held=True),
    Source(_NTREX, "bs", "news", r".*ref\.bos\.txt", "lines", held=True),
    Source("clarinsi/benchich", "hr", "talk", r"copa/data/test-hr\.jsonl", "json", held=True),
    Source("clarinsi/benchich", "sr", "talk", r"copa/data/test-sr.*\.jsonl", "json", held=True),
    *(
        Source("microsoft/Security-101", language, "lessons", rf"translations/{language}/.*\.md",
               held=True)
        for language in ("hr", "sr")
    ),
    Source(f"{_UD}_Croatian-SET", "hr", "news", r"hr_set-ud-dev\.conllu", "conllu", held=True),
    Source(f"{_UD}_Serbian-SET", "sr", "news", r"sr_set-ud-dev\.conllu", "conllu", held=True),
    Source("COST-ELTeC/ELTeC-hrv", "hr", "fiction", rf"level1/{_HELD_NOVELS}\.xml", "tei", True),
    Source("COST-ELTeC/ELTeC-srp", "sr", "fiction", rf"level1/{_HELD_NOVELS}\.xml", "tei", True),
)  # fmt: skip


def running(folder: Path, *, held: bool) -> Texts:
    """Language → genre and repository → paragraphs, of those held apart or of the others.

    A paragraph is mostly letters, is there once a language, and is no other language (the compact
    detector's word on that, which does not tell the three apart; corpora of sentences need none).
    """
    texts: Texts = defaultdict(lambda: defaultdict(list))
    seen: set[tuple[str, str]] = set()
    avoided = _avoided(folder)
    for source in TEXTS:
        if source.held != held:
            continue
        for raw in _files(_clone(folder, source.repository), source.files):
            for paragraph in _paragraphs(raw, source.kind):
                text = latin(paragraph)
                if source.repository == _BABUSHKA and not avoided.isdisjoint(_phrases(text)):
                    continue
                known = source.kind in _WHOLE or _south_slavic(text)
                if known and (source.language, text) not in seen:
                    seen.add((source.language, text))
                    texts[source.language][f"{source.genre}:{source.repository}"].append(text)
    return texts


_PHRASE = 8
_WORD = re.compile(r"[^\W\d_]+")


def _phrases(text: str) -> set[str]:
    """Every run of eight words."""
    words = _WORD.findall(text.lower())
    return {" ".join(words[at : at + _PHRASE]) for at in range(len(words) - _PHRASE + 1)}


def _avoided(folder: Path) -> set[str]:
    """Phrases of the UD files that are checked or fitted on: the corpora in babushka-bench have
    the same documents, split otherwise. A document with one such phrase is left out."""
    found: set[str] = set()
    for name in ("Croatian-SET", "Serbian-SET"):
        clone = _clone(folder, f"{_UD}_{name}")
        for raw in _files(clone, r".*-ud-(?:test|dev)\.conllu"):
            for text in _paragraphs(raw, "conllu"):
                found |= _phrases(text)
    return found


def spoken(folder: Path, language: str) -> dict[str, float]:
    """Words and their share of all words in film subtitles, the 50,000 most frequent."""
    clone = _clone(folder, "hermitdave/FrequencyWords")
    listed = _git(clone, "show", f"HEAD:content/2018/{language}/{language}_50k.txt")
    counts: dict[str, int] = defaultdict(int)
    for line in listed.splitlines():
        word, _, count = line.rpartition(" ")
        if word.isalpha():
            counts[latin(word)] += int(count)
    whole = sum(counts.values())
    return {word: count / whole for word, count in counts.items()}


def written(folder: Path, language: str) -> dict[str, float]:
    """Words and their share of all words in news on the web. A word that is only met with a capital
    is a name and left out."""
    clone = _clone(folder, "unicode-org/unilex")
    listed = _git(clone, "show", f"HEAD:data/frequency/{_WRITTEN[language]}.txt")
    counts: dict[str, int] = defaultdict(int)
    kept: set[str] = set()
    for line in listed.splitlines():
        word, _, count = line.partition("\t")
        if word.isalpha() and count.isdigit():
            counts[word.lower()] += int(count)
            if word.islower():
                kept.add(word)
    whole = sum(counts[word] for word in kept)
    return {word: counts[word] / whole for word in sorted(kept)}


_WRITTEN = {"hr": "hr", "sr": "sr-Latn"}


def _clone(folder: Path, repository: str) -> Path:
    base = folder / repository.replace("/", "+")
    for place in (base / "repo/.git", base / "repo", base / ".git", base):
        if (place / "HEAD").exists():
            return place
    raise FileNotFoundError(f"{base}: clone the repository {repository} there")


def _files(clone: Path, pattern: str) -> Iterator[str]:
    """Texts of the files whose whole path matches, in the order of their paths."""
    listed = _git(clone, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    for path in sorted(path for path in listed if re.fullmatch(pattern, path)):
        yield _git(clone, "show", f"HEAD:{path}")


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *command], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


_CODE = re.compile(
    r"^(```|~~~|----|====|\.\.\.\.)[^\n]*\n.*?^\1[^\n]*$|^---\n.*?\n---$|<!--.*?-->"
    r"|<(script|style)\b.*?</\2>|^\.\. (?!note)[^\n]*(?:\n+[ \t]+[^\n]*)*|^(?: {4}|\t)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_MARKS = re.compile(
    r"!?\[([^\]\n]{0,300})\]\([^)\n]*\)|<[^<>\n]{0,300}>|`[^`\n]{0,200}`|\$[^$\n]{0,200}\$"
    r"|https?://\S+|www\.\S+|[@#]\w+|\{[^{}\n]{0,200}\}|:\w+:|&\w{1,8};|\|[^|\n]{1,40}\|"
)
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)]))")


def _paragraphs(raw: str, kind: str) -> Iterator[str]:
    if kind == "lines":
        parts: list[str] = raw.splitlines()
    elif kind == "conllu":
        parts = re.findall(r"^# text = (.*)", raw, re.MULTILINE)
    elif kind == "second":
        parts = [line.split("\t")[1] for line in raw.splitlines() if "\t" in line]
    elif kind == "third":
        parts = [line.split("\t")[2] for line in raw.splitlines()[1:] if line.count("\t") > 1]
    elif kind == "law":
        parts = [text for part in _json(raw) for text in re.split(r"\n\s*\n", part)]
    elif kind == "json":
        parts = [text for part in _json(raw) for text in part.split("\n")]
    elif kind == "tei":
        body = raw.partition("<body>")[2]
        parts = [re.sub(r"<[^>]*>", "", p) for p in re.split(r"</(?:p|l|head)>", body)]
    else:
        parts = _BREAK.split(_CODE.sub("\n\n", raw))
    for part in parts:
        text = " ".join(_MARKS.sub(lambda m: m[1] or " ", part).strip(" |>*#-+=_").split())
        if len(text) >= (12 if kind in _WHOLE else 40) and sum(map(str.isalpha, text)) > 0.7 * len(
            text
        ):
            yield text.replace("*", "").replace("_", " ")


_WHOLE = frozenset({"lines", "second", "third", "conllu"})
"""Kinds of which every line is known to be in the language."""


def _json(raw: str) -> Iterator[str]:
    """Strings of a JSON file, or of one with a JSON value a line; of a line, joined."""
    values = [json.loads(raw)] if raw.lstrip().startswith(("{\n", "[")) else None
    for value in values or map(json.loads, raw.splitlines()):
        found = list(_strings(value))
        yield from found if values else [" ".join(found)]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in {"content", "text", "premise", "choice1", "choice2"} or not isinstance(
                one, str
            ):
                yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


_NEAR = frozenset({"hr", "sr", "bs", "sl", "mk", "sk", "cs"})


def _south_slavic(text: str) -> bool:
    found = _detector().FindLanguage(text)
    return str(found.language) in _NEAR


@cache
def _detector() -> Any:
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=1000)
