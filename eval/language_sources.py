"""Where the language model's training text comes from, and how it is read: packages.

Running text of Croatian and Serbian, with its licences: `eval/language_texts.py`.

Everything comes by the ordinary clients of Debian's archive and of the Python index; nothing of it
is kept in the repository, only the weights that training derives from it.

* Message catalogues (`*.mo`) of `CATALOGUES`: translations of programs, of help and of a game's
  story, in up to 60 languages. Licences: GPL-2+/LGPL (KDE, GNOME, GIMP, Inkscape, Wesnoth and most
  others), MPL-2.0 (LibreOffice), AGPL/GPL (WordPress, MediaWiki). English: the catalogues' ids.
* Spelling dictionaries `hunspell-hr` (LGPL or SISSL) and `hunspell-sr` (GPL-2+, LGPL-2.1 or
  MPL-1.1): which words each has (`eval/language_words.py`).
* Word lists inside Tesseract's models (`tesseract-ocr-*`, Apache-2.0), made from web text.
* Frequencies of runs of one to five letters in news and web text: the models inside lingua 1.3.5
  (Apache-2.0), which its author counted in the Leipzig Corpora (CC BY).

Serbian in Latin script: the Cyrillic text transliterated (letter by letter, exact in this
direction) and the catalogues that are Latin already.
"""

import gettext
import json
import re
import shutil
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CATALOGUES = (
    "libreoffice-l10n-bg", "libreoffice-l10n-bs", "libreoffice-l10n-de", "libreoffice-l10n-hr",
    "libreoffice-l10n-mk", "libreoffice-l10n-ru", "libreoffice-l10n-sl", "libreoffice-l10n-sr",
    "libreoffice-l10n-uk", "libreoffice-l10n-cs", "libreoffice-l10n-sk", "libreoffice-l10n-pl",
    "libreoffice-l10n-be", "wesnoth-1.16-data", "wordpress-l10n", "cinnamon-l10n", "digikam-data",
    "kdenlive-data", "krita-l10n", "kstars-data", "marble-data", "gimp-data", "inkscape",
    "gnucash-common", "evolution-common", "evolution-data-server-common", "nautilus-data",
    "phpmyadmin", "gnome-control-center-data", "libgtk-3-common", "vlc-l10n", "audacity-data",
    "darktable", "freeciv-data", "gramps", "gcompris-qt-data", "kmymoney-common",
    "konversation-data", "plasma-workspace-data", "plasma-desktop-data", "kio",
    "kdeplasma-addons-data", "gedit-common", "rhythmbox-data", "totem-common", "synaptic",
    "gnome-software-common", "aptitude-common", "kmail", "kaddressbook-data", "korganizer",
    "konqueror", "dolphin", "lokalize", "umbrello", "skrooge-common", "tellico-data", "parley-data",
    "kalzium-data", "kgeography-data", "homebank", "gnumeric-common", "liferea-data", "pidgin-data",
    "deluge-common", "filezilla-common", "abiword-common", "iso-codes", "kdevelop-data",
)  # fmt: skip
WORD_LISTS = {
    "hr": "hrv", "bs": "bos", "sr": "srp", "sl": "slv", "mk": "mkd", "bg": "bul", "ru": "rus",
    "uk": "ukr", "be": "bel", "cs": "ces", "sk": "slk", "pl": "pol", "en": "eng", "de": "deu",
}  # fmt: skip
DICTIONARIES = {"hr": ("hunspell-hr", "hr_HR"), "sr": ("hunspell-sr", "sr_Latn_RS")}
"""Language → package, and the name of the Latin dictionary in it."""
LINGUA = "lingua-language-detector==1.3.5"

_LATIN = {
    "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "ђ": "đ", "е": "e", "ж": "ž", "з": "z",
    "и": "i", "ј": "j", "к": "k", "л": "l", "љ": "lj", "м": "m", "н": "n", "њ": "nj", "о": "o",
    "п": "p", "р": "r", "с": "s", "т": "t", "ћ": "ć", "у": "u", "ф": "f", "х": "h", "ц": "c",
    "ч": "č", "џ": "dž", "ш": "š",
}  # fmt: skip
_TO_LATIN = str.maketrans(_LATIN | {k.upper(): v.capitalize() for k, v in _LATIN.items()})
_TO_CYRILLIC = {latin: cyrillic for cyrillic, latin in _LATIN.items()}
_LETTERS = re.compile("|".join(sorted(_TO_CYRILLIC, key=len, reverse=True)))
_WORD = re.compile(r"[^\W\d_]+")


def latin(text: str) -> str:
    """Serbian Cyrillic in Latin letters."""
    return text.translate(_TO_LATIN)


def cyrillic(word: str) -> str:
    """A lower-case Serbian word in Cyrillic letters (wrong for the few with n+j, l+j, d+ž)."""
    return _LETTERS.sub(lambda found: _TO_CYRILLIC[found[0]], word)


def fetch(work: Path) -> None:
    """Packages and what is needed of them, under `work`; what is there already is kept."""
    debs, tree = work / "deb", work / "tree"
    debs.mkdir(parents=True, exist_ok=True)
    lists = [f"tesseract-ocr-{code}" for code in (*WORD_LISTS.values(), "srp-latn")]
    spelling = [package for package, _ in DICTIONARIES.values()]
    names = [n for n in (*CATALOGUES, *lists, *spelling) if not list(debs.glob(f"{n}_*.deb"))]
    if names:
        subprocess.run(["apt-get", "download", "-qq", *names], cwd=debs, check=True)
    for deb in sorted(debs.glob("*.deb")):
        target = tree / deb.name.split("_")[0]
        if not target.exists():
            _unpack(deb, target)
    if not (work / "lingua").exists():
        pip = ["pip", "download", "-q", "--no-deps", "-d", str(work), LINGUA]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(work.glob("lingua_*.whl"))) as wheel:
            wheel.extractall(work / "lingua")


def _unpack(deb: Path, target: Path) -> None:
    target.mkdir(parents=True)
    pack = subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(deb)],
        stdout=subprocess.PIPE,
    )
    wanted = ["--wildcards", "*.mo", "*.traineddata", "*.aff", "*.dic"]
    subprocess.run(
        ["tar", "-x", "-C", str(target), *wanted],
        stdin=pack.stdout,
        check=False,  # tar complains when a pattern matched nothing
        stderr=subprocess.DEVNULL,
    )
    pack.wait()


_NO_TEXT = re.compile(
    r"<[^<>]{0,300}>|&\w{1,8};|%[-\d$.#]*[a-zA-Z]+|%\d|\$\{?\w+\}?|\{[^{}]*\}"
    r"|https?://\S+|\\[nt]|\S*[/\\@=_#|]\S*"
)
_MNEMONIC = re.compile(r"[_&~](?=\w)")
_TERRITORY = re.compile(r"_(?:RS|HR|DE|BA|MK|SI|BG|RU|BR|PL|CZ|SK|UA|IT|FR|ES|NL)\b")

Texts = dict[str, dict[str, list[str]]]
"""Language → package → its strings. `sr@latin` is Serbian that was Latin in the package."""


def catalogues(work: Path) -> Texts:
    """All strings of 12 or more characters that are mostly letters, each once a language."""
    kept = work / "catalogues.json"
    if not kept.exists():
        kept.write_text(json.dumps(_catalogues(work), ensure_ascii=False), "utf-8")
    texts: Texts = json.loads(kept.read_text("utf-8"))
    return texts


def _catalogues(work: Path) -> Texts:
    texts: Texts = defaultdict(lambda: defaultdict(list))
    seen: set[tuple[str, str]] = set()
    for package in sorted((work / "tree").iterdir()):
        for file in sorted(package.rglob("*.mo")):
            language = _TERRITORY.sub("", _locale(file).split(".")[0])
            for key, value in _messages(file):
                pairs = [(language, value)] if value != key else []
                pairs += [("en", key)] if language == "de" and key.isascii() else []
                for code, raw in pairs:
                    for string in _strings(raw):
                        if (code, string) not in seen:
                            seen.add((code, string))
                            texts[code][package.name].append(string)
    return texts


def _locale(file: Path) -> str:
    parts = file.parts
    return parts[parts.index("LC_MESSAGES") - 1] if "LC_MESSAGES" in parts else file.stem


def _messages(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        try:
            catalogue: dict[Any, str] = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
        except (OSError, IndexError, ValueError):  # a broken or a foreign file
            return
    for key, value in catalogue.items():
        text = key[0] if isinstance(key, tuple) else key
        if text:
            yield text.split("\x04")[-1], value


def _strings(raw: str) -> Iterator[str]:
    for part in re.split(r"\n\s*\n", raw):
        text = " ".join(_MNEMONIC.sub("", _NO_TEXT.sub(" ", part)).split())
        if len(text) >= 12 and sum(map(str.isalpha, text)) > 0.6 * len(text):
            yield text


def word_list(work: Path, language: str, texts: Texts) -> set[str]:
    """Word forms in lower case: Tesseract's list, and the words of the catalogues."""
    words = set(_dawg(work, WORD_LISTS[language]))
    if language == "sr":
        words |= {cyrillic(word) for word in _dawg(work, "srp_latn")}
    for strings in texts[language].values():
        for string in strings:
            words.update(_WORD.findall(string.lower()))
    return words


def _dawg(work: Path, code: str) -> Iterator[str]:
    """Needs the tools of `tesseract-ocr`."""
    folder = work / "words"
    folder.mkdir(exist_ok=True)
    text = folder / f"{code}.txt"
    if not text.exists():
        model = next(
            (work / "tree").glob(f"*/usr/share/tesseract-ocr/*/tessdata/{code}.traineddata")
        )
        stem = str(folder / f"{code}.")
        for command in (
            [_tool("combine_tessdata"), "-u", str(model), stem],
            [_tool("dawg2wordlist"), f"{stem}lstm-unicharset", f"{stem}lstm-word-dawg", str(text)],
        ):
            subprocess.run(command, check=True, capture_output=True)
    for line in text.read_text("utf-8", errors="ignore").splitlines():
        if word := line.strip().lower():
            yield word


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name}: install tesseract-ocr")
    return found


def runs(work: Path, language: str) -> dict[str, float]:
    """How often each run of 1 to 5 letters is found, per letter of text.

    The models hold a run's share among the runs with the same beginning; multiplying down the
    beginnings gives the share of all text.
    """
    import brotli

    shares: dict[str, float] = {}
    folder = work / "lingua" / "lingua/language-models" / language
    for name in ("unigrams", "bigrams", "trigrams", "quadrigrams", "fivegrams"):
        packed = (folder / f"{name}.json.br").read_bytes()
        for fraction, grams in json.loads(brotli.decompress(packed))["ngrams"].items():
            part, whole = map(int, fraction.split("/"))
            for gram in grams.split(" "):
                shares[gram] = part / whole * (shares.get(gram[:-1], 0.0) if len(gram) > 1 else 1)
    return shares
