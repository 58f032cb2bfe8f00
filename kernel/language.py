"""Which of the accepted languages a text is in; Serbian told from Croatian in Latin script too."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

ACCEPTED: frozenset[str] = frozenset({"en", "de", "bg", "ru", "sr", "mk", "hr", "sl"})
"""ISO 639-1 codes that the knowledge base takes in; Serbian in both scripts."""

UNKNOWN = "unknown"

_WINDOW = 1200
_WINDOWS = 8
_MIN_LETTERS = 3


class Language(NamedTuple):
    """`code`: ISO 639-1 or `unknown`; `confidence`: 0 to 1."""

    code: str
    confidence: float


def detect(text: str) -> Language:
    """Main language of `text`: Markdown or plain, of any length.

    Code, addresses and markup are left out. A long text is judged by up to eight windows spread
    over it, each voting with the detector's probability; `confidence` is the winner's share.
    Bosnian is called by its nearest neighbour, Croatian or Serbian.
    """
    votes: Counter[str] = Counter()
    windows = list(_windows(prose(text)))
    for window in windows:
        code, probability = _identify(window)
        votes[code] += probability  # type: ignore[assignment]
    if not votes:
        return Language(UNKNOWN, 0.0)
    code, weight = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
    return Language(code, round(min(1.0, weight / len(windows)), 4))


_NOT_PROSE = re.compile(
    r"^(```|~~~).{0,3000}?^\1[`~]*\s*$"  # fenced code
    r"|`[^`\n]{1,200}`"
    r"|<[^<>\n]{1,300}>"
    r"|\]\([^)\n]{1,500}\)"  # the target of a link
    r"|\b(?:https?://|www\.)\S+"
    r"|\S+@\S+\.\w+"
    r"|&\w{2,8};"
    r"|[A-Za-z0-9_]*[_\d][A-Za-z0-9_]+",  # identifiers
    re.MULTILINE | re.DOTALL,
)
_SPACES = re.compile(r"[\W\d_]*\s[\W\d_]*")


_SAMPLE, _SLICES = 120_000, 6
_UNBROKEN = re.compile(r"(\S{100})(?=\S)")


def _sampled(text: str) -> str:
    """Slices from all over a long text: what is looked at has a bound."""
    if len(text) <= _SAMPLE:
        return text
    size = _SAMPLE // _SLICES
    stride = (len(text) - size) // (_SLICES - 1)
    return "\n".join(text[n * stride :][:size] for n in range(_SLICES))


def prose(text: str) -> str:
    """`text` without code, addresses, identifiers and punctuation between words.

    Words end after 100 letters and a long text is sampled, so that no pattern takes longer than
    its length on a hostile text.
    """
    text = _UNBROKEN.sub(r"\1 ", _sampled(text))
    return _SPACES.sub(" ", _NOT_PROSE.sub(" ", text)).strip()


def _windows(text: str) -> Iterable[str]:
    count = min(_WINDOWS, max(1, len(text) // _WINDOW))
    stride = max(1, (len(text) - _WINDOW) // max(1, count - 1)) if count > 1 else 0
    for number in range(count):
        window = text[number * stride :][:_WINDOW]
        if sum(map(str.isalpha, window)) >= _MIN_LETTERS:
            yield window


@cache
def identifier() -> Any:
    """The compact language detector; loads in 30 ms, is kept."""
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=8192)


def _identify(text: str) -> tuple[str, float]:
    found = identifier().FindLanguage(text)
    code, probability = str(found.language), float(found.probability)
    if _is_cyrillic(text):
        return _cyrillic(text, code, probability)
    if code in _SOUTH_SLAVIC or code.endswith("-Latn"):
        return _serbian_or_croatian(text, code, probability)
    return _CODES.get(code, code), probability


_CODES = {"iw": "he", "no": "nb", "und": UNKNOWN}
_SOUTH_SLAVIC = frozenset({"hr", "bs", "sr", "sh", "sr-Latn"})


def _is_cyrillic(text: str) -> bool:
    cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in text)
    return cyrillic * 2 > sum(map(str.isalpha, text))


_OTHER_LETTERS = re.compile(r"[іїєґўқңғүұһөәҳҷӣӯ]", re.IGNORECASE)
_LETTERS = {
    "sr": re.compile(r"[ђћ]", re.IGNORECASE),
    "mk": re.compile(r"[ѓќѕ]", re.IGNORECASE),
    "ru": re.compile(r"[ыэё]", re.IGNORECASE),
}
_SR_MK = re.compile(r"[јљњџ]", re.IGNORECASE)
_BG = re.compile(r"[а-я]ъ[а-я]|\b(?:ще|който|което|които|която|към|като|със|във)\b", re.IGNORECASE)
_SR_WORDS = re.compile(
    r"\b(?:је|су|у|као|које|којег|којој|због|није|сам|смо|бити|било|овде|овог|само|са|ће|"
    r"јер|али|па|те|или|али|шта|већ|био|била|тако|када|сваки|свако|његов\w*)\b"
    r"|\w{3,}(?:ити|ати|ује|ају|ији)\b",
    re.IGNORECASE,
)
_MK_WORDS = re.compile(
    r"\b(?:во|со|дека|кои|кога|ова|оваа|овој|беше|бил|исто|така|сум|сме|биде|ги|го|му|ѝ|ја|"
    r"нив|нивн\w*|негов\w*|може|кој|дали|секој|секоја|најмногу|меѓу|кон|низ|само|уште|но)\b"
    r"|\w{3,}(?:от|ата|ите|ото|иот|ува|ест|ење)\b",
    re.IGNORECASE,
)


def _cyrillic(text: str, code: str, probability: float) -> tuple[str, float]:
    """Letters that only one language has outweigh the detector."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _LETTERS.items()}
    others = len(_OTHER_LETTERS.findall(text))
    if others > sum(counts.values()) or (others and code not in ACCEPTED):
        return code, probability
    name, most = max(counts.items(), key=lambda item: item[1])
    if most * 2 > sum(counts.values()):
        return name, max(probability, 0.95)
    if _SR_MK.search(text):
        return _serbian_or_macedonian(text, code, probability)
    if code not in {"bg", "ru"} and _BG.search(text):
        return "bg", max(probability, 0.8)
    return code, probability


def _serbian_or_macedonian(text: str, code: str, probability: float) -> tuple[str, float]:
    lead = len(_SR_WORDS.findall(text)) - len(_MK_WORDS.findall(text))
    if lead == 0 or (code in {"sr", "mk"} and probability > 0.9 and abs(lead) < 3):
        return (code if code in {"sr", "mk"} else "sr"), max(probability, 0.6)
    return ("sr" if lead > 0 else "mk"), max(probability, 0.9)


# The languages differ by the reflex of old yat (ekavian `mesto`, ijekavian `mjesto`), by a few
# hundred words and by some verb endings. Each pattern is a stem unless closed by `$`.
_SERBIAN = """
demokratij univerzitet sprat porodic penzij udruže sekretar fudbal sudij advokat vanredn uticaj
uticat izvešta zvanič tačk tačan tačn takmič berz supa$ supe$ pasoš hiljadu spisak spiska dugme
dugmad izaber izabir nalog podesi podeša ukoliko$ pomeran pomera pomeri dozvol srbij srpsk beograd
ministar$ plata$ plate$ prosvet azij odeljak odeljk obavesti preuzet sledstv odbrane odbrana sem$
hemijsk špansk holandi engleska$ vaspitn delimič stepenic uspon prema$ kompjuter saradn doprinos
jezgro jezgra pokušav univerzalni bezbednosn rešetk hrišćan atletičar gimnazij poseban posebn
šta$ ko$ neko$ niko$ iko$ svako$ takođe$ uopšte$ tokom$ hiljad opšt opštin vazduh sistem sopstven
evrop evro$ evra$ hemij istorij muzik naučn nauk nauč bioskop pozorišt fabri voz$ vozov avgust
januar februar mart$ martu$ marta$ april jun$ juna$ junu$ jul$ jula$ julu$ septemb oktob novemb
decemb računar fascikl štamp podešava uputstv korišće saopšt saobraća prisust odsust preduze
učestv učešć nedelj ponedelj bezbed obezbed verovat sledeć poslednj posle$ gde$ ovde$ negde$
nigde$ svugde$ uvek$ čovek mest vreme$ primer primen promen izmen zamen menja ocen procen cena$
cene$ cenu$ vredn mera$ mere$ meri mer$ smer namer ver$ vera$ vere$ veru veruj mesec zvezd sneg
sever obavešt obaveš savet zahtev poveri reš rešen pesm sedišt seća celo celin celok ceo$ lek$
lekov leč devoj nemač stepen hleb dete$ deteta$ deca$ dece$ deci$ decu$ podstic podstič pošto$
svešć reč$ reči$ reka$ reke$ mlek
telo$ tela$ telu$ delo$ dela$ delu$ delov deo$ deljen odeljen svet$ sveta$ svetu$ svetsk vek$
veka$ veku$ lep$ lepa$ lepo$ levo$ leva$ beli$ belo$ pre$ želeo$ želel želet hteo$ video$ videl
videt živel živet voleo$ volel volet razume razumet umet uspeh uspet uspel uspeš smet smeju sme$
biće$ imaće$ moraće$ moći organizova registrova definisa kontrolisa informisa finansir kancelar
obrazovn jeste$ bezbedn predlog$ predlož predlaž različ$ prevod prevoz odsek odel pored$ umesto$
mešovit mešav sledit sledi$ naslede nasled greš preps sused rečnik rečen osmeh smeh razmer
premešta smešt smešten bekst besk pripad vaspit lič ručak sto$ dvest trebal dejstv delova deluj
delat koren korena isprav ispravk brisanj kreira kopir sačuv obriš pretraž pretrag prečic taster
ekran miš$ tabl$ mreža$ veb internet$ stranic lozink datotek sadrž omoguć onemoguć potvrd poruk
"""
_CROATIAN = """
demokracij mladež sveučili župan župni udrug kat$ katu$ kata$ kupaonic mirovin obitelj natjec natječ
tvar$ tvari$ čimben poput$ stoga$ usporedn dvoran točk točan točn burz$ juha$ juhe$ putovnic gumb
odaber odabir račun$ računa$ računu$ pomič dopušt dopušten služben zračn srednjo uopćen uistinu$
ravnatelj učitelj odvjetn sudac$ suca$ ministarst izvanred siguran susret premda$ ugled sukladno$
pojedinost primjeric sljedbenik podneblj zaporka zaporke zaporku pisač preuzimanj nadograd izbornik
što$ tko$ netko$ nitko$ itko$ svatko$ također$ uopće$ tijekom$ tisuć opć općin zrak$ zraka$ zraku$
sustav vlastit europ euro$ eura$ kemij povijes glazb znanost znanstv kino$ kina$ kazališt tvornic
vlak kolovoz siječnj veljač ožujk ožujak travnj travanj svibnj svibanj lipnj lipanj srpnj srpanj
rujn rujan listopad studen prosin računal ispis postavk uput$ upute$ uputa$ korište priopć promet
nazočn odsutn poduzeć sudjel tjed nedjelj ponedjelj sigurno osigur vjeroj sljedeć posljednj
poslije$ gdje$ ovdje$ negdje$ nigdje$ svugdje$ uvijek$ čovje mjest vrijeme$ primjer primjen promjen
izmjen zamjen zamijen mijenja ocjen procjen cijen vrijedn mjera$ mjere$ mjer smjer namjer vjer
mjesec zvijezd zvjezd snijeg sjever obavijes obavješ savjet zahtjev povjer rješ riješ pjesm sjedi
sjeć cijel cjel lijek liječ djevoj njemač stupanj stupnj kruh dijete$ djetet djec riječ rijek mlijek
tijel djel dio$ dijel svijet svjet stoljeć lijep lijev bijel prije$ želio$ željel željet htio$
vidio$ vidjel vidjet živjel živjet volje razumije razumjet umije uspjeh uspje smije smjet
organizir registrir definira kontrolir informira financ ured$ ureda$ uredu$ odgoj prijedlo usporedb
odjel umjesto$ miješ slijed nasljed pogreš susjed rječ osmijeh smijeh premješt smješt djelova djeluj
djelatn pristup zaslon tipk poveznic mrež web izbriš spremi spremlj datum korijen obrazac stvaran
nogomet tajnik tvrtk glede$ glasovat potpor zamolb skupin nositelj njegov$ njezin suradnj izvješ
uvjet utjecaj razdoblj promicanj zajamč prava$ ljudsk pučanstv izobrazb naobrazb gospodar dostojan
"""
_JOINED_FUTURE = re.compile(r"\b(?:bi|ima|mora|treba|može|dobi|radi|posta|vide|nala)će\b")
_SPLIT_FUTURE = re.compile(r"\b\w+[aiu]t će\b|\bće se moći\b")
_DA_CLAUSE = re.compile(
    r"\b(?:mož\w*|mog\w*|mora\w*|treba\w*|žel\w*|hoć\w*|neć\w*|sme\w*|mora|ume\w*) da\b|\bda li\b"
)
_INFINITIVE = re.compile(r"\b(?:mož\w*|mog\w*|mora\w*|treba\w*|želi\w*) \w+(?:ti|ći)\b|\bje li\b")
_VERB_SR = re.compile(r"\b\w{4,}(?:isati|isan[aoie]?|ovan[aoie]?|ujte)\b")
_VERB_HR = re.compile(r"\b\w{4,}(?:irati|iran[aoie]?|irajte)\b")
# `je` after these consonants is ijekavian, but for a few prefixes and loans of both languages.
_YAT_HR = re.compile(
    r"(?<![os]u)(?:[vmptrch]|(?<!o)(?<!po)d|(?<!o)b|(?<!i)z)je(?!m\b|š\b)\w"
    r"|sje(?!din)\w|[lrcmdtvs]ije(?:t|d|č|p|l|s|k|h|p)\w"
)
_WORD = re.compile(r"\w+")
# Entries of the lists above that the other language also has.
_EITHER = """
moći prevod prevoz pripad vaspit lič ručak sto$ trebal koren korena isprav ispravk brisanj
    kopir kreira sačuv pretrag prečic ekran miš$ tabl$ mreža$ internet$ stranic lozink datotek sadrž
    omoguć onemoguć potvrd poruk pored$ različ$ nauč preps bekst besk mer$ ver$ pristup mrež datum
    njegov$ prava$ ljudsk stvaran obrazac dostojan gospodar prema$ azij uspon poseban posebn
    engleska$ univerzalni pokušav atletičar ministarst ministar$ ugled susret učitelj srednjo
    delimič supa$ usporedn jezgra gimnazij kompjuter pojedinost siguran dopušten ručak
"""


@cache
def _stems() -> tuple[dict[str, int], dict[str, int]]:
    """Closed words and open stems, +1 Serbian, -1 Croatian."""
    either = set(_EITHER.split())
    words: dict[str, int] = {}
    stems: dict[str, int] = {}
    for source, sign in ((_SERBIAN, 1), (_CROATIAN, -1)):
        for entry in source.split():
            if entry in either:
                continue
            (words if entry.endswith("$") else stems)[entry.rstrip("$")] = sign
    return words, stems


def _serbian_or_croatian(text: str, code: str, probability: float) -> tuple[str, float]:
    """Positive evidence is Serbian, negative Croatian; without any the detector's view holds."""
    lower = text.lower()
    evidence = sum(_word_evidence(word) for word in _WORD.findall(lower))
    if code not in _SOUTH_SLAVIC and abs(evidence) < 2:
        return UNKNOWN, probability
    for pattern, weight in (
        (_JOINED_FUTURE, 1), (_SPLIT_FUTURE, -1), (_DA_CLAUSE, 1), (_INFINITIVE, -1),
        (_VERB_SR, 1), (_VERB_HR, -1), (_YAT_HR, -1),
    ):  # fmt: skip
        evidence += weight * len(pattern.findall(lower))
    if evidence == 0:
        return ("hr" if code == "hr" else "sr"), max(probability, 0.6)
    return ("sr" if evidence > 0 else "hr"), max(probability, 0.9)


def _word_evidence(word: str) -> int:
    words, stems = _stems()
    if word in words:
        return words[word]
    for length in range(min(len(word), 9), 2, -1):
        if word[:length] in stems:
            return stems[word[:length]]
    return 0
