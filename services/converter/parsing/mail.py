"""Mails: EML by the standard library, Outlook's MSG by oxmsg; attachments become documents.

docling reads both, but flattens an HTML body, does not tell what a reader cannot see, and drops
the attachments.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place, Span
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import EML
from services.converter.parsing.hidden import is_sentence
from services.converter.parsing.html import parse_html
from services.converter.parsing.letter import MOST_FILES, Mail, Text, told_text
from services.converter.parsing.literal import paragraph, plain_line, span
from services.converter.parsing.outlook import read_msg
from services.converter.parsing.properties import line
from services.converter.parsing.result import Parse
from services.converter.parsing.rtf import read_rtf
from services.converter.parsing.tnef import read_tnef
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_NAMED_FILES = 20
_SHOWN = ("From", "To", "Cc", "Date")
_HIDDEN = ("comments", "keywords", "thread-topic", "organization", "reply-to", "x-comment")
_MOST_HEADS = 500
_FOREWORD = re.compile(r"multi-?part message in MIME", re.IGNORECASE)
_REPORTS = frozenset({
    "message/delivery-status", "message/disposition-notification", "message/feedback-report",
})  # fmt: skip
_SEVEN_BITS = frozenset({"utf-7", "unicode-1-1-utf-7"})
_WORD = re.compile(r"\w+")
_SAME = 0.8
"""Share of the words of a text that must stand in a page for both to say the same."""
_ENVELOPE = re.compile(rb"(?:\r?\n)*>?From [^\r\n]*\r?\n")
"""The line with which a mailbox begins a mail."""
_NEXT_MAIL = re.compile(rb"(?<=\n)\r?\n(From [^\r\n]{1,300}\r?\n)(?=[!-9;-~]{1,100}:)")
_SENT = re.compile(rb"\d\d:\d\d")
_CID = re.compile(r"cid:([^\"'\s>)]+)", re.IGNORECASE)


def parse_mail(path: Path, media_type: str, options: ParseOptions) -> Parse:
    """A mail: its subject as title, who wrote to whom and when, its text, names of attachments.

    The HTML body, else the rich text, is what a reader sees; a plain-text body that says something
    else is kept for the scanner. Texts one after another are all seen. Of a mailbox the first mail
    is the document, the others are its files.

    Raises:
        Refusal: `corrupt-document`, `too-deep`, `too-large`.
    """
    data = path.read_bytes()
    mail = _eml(data, options) if media_type == EML else read_msg(data)
    out = Writer(options.max_output_bytes)
    out.heading(mail.subject or "(no subject)", 1, Place(part="header"))
    facts = [f"{name}: {span(mail.headers[name])}" for name in _SHOWN if mail.headers.get(name)]
    if mail.files:
        more = len(mail.files) - _NAMED_FILES
        names = [span(file.name) for file in mail.files[:_NAMED_FILES]]
        facts.append(f"Attachments: {', '.join(names)}" + (f" and {more} more" if more > 0 else ""))
    out.block("\\\n".join(facts), Place(part="header"))
    _Body(mail, out, options).write()
    markdown, spans = out.finish()
    meta = BodyMeta(
        title=line(mail.subject),
        language=UNKNOWN,
        media_type=media_type,
        author=line(mail.sender) or None,
        date=mail.date.date().isoformat() if mail.date else None,
    )
    hidden = tuple(dict.fromkeys(mail.hidden))
    document = ParsedDocument(markdown=markdown, hidden=hidden, meta=meta, spans=spans)
    return Parse(document, mail.warnings, files=tuple(mail.files))


class _Body:
    """The texts of a mail, one after another, each in the form that a reader sees."""

    def __init__(self, mail: Mail, out: Writer, options: ParseOptions) -> None:
        self._mail, self._out, self._options = mail, out, options
        self._numbers = Counter[str]()
        self._seen: dict[bytes, ParsedDocument | None] = {}

    def write(self) -> None:
        """Every text. Of a page and a plain text side by side that say the same, the page."""
        texts = self._mail.texts
        pages = "".join(self._words(page) for text in texts for page in text.pages)
        known, squeezed = Counter(_WORD.findall(pages.lower())), _squeezed(pages)
        for text in texts:
            shown = _squeezed(self._pages(text) or self._rich(text))
            only = not text.pages and not text.rich
            for plain in text.plain:
                place = self._place("text")
                if shown or (only and _repeats(plain, known)):
                    self._hide(plain, shown or squeezed)
                else:
                    self._out.block(paragraph(plain, lists=True), place)

    def _hide(self, plain: str, shown: str) -> None:
        if plain.strip() and _squeezed(plain) not in shown:
            # Another text than the one shown: programs read it, people do not.
            self._mail.hidden.append(HiddenText(kind="notes", text=plain.strip()))

    def _words(self, page: bytes) -> str:
        parsed = self._parsed(page)
        return parsed.markdown if parsed is not None else ""

    def _pages(self, text: Text) -> str:
        """Write the pages; what they say."""
        shown = ""
        for page in text.pages:
            name = self._place("html").part or ""
            document = self._parsed(page)
            if document is not None:
                self._mail.hidden += document.hidden
                untitled = _without_title(document, self._mail.subject)
                self._out.copy(untitled, name)
                shown += untitled.markdown
        return shown

    def _parsed(self, page: bytes) -> ParsedDocument | None:
        if page not in self._seen:
            self._seen[page] = None
            try:
                self._seen[page] = parse_html(page, self._options, article=False).document
            except Refusal as refusal:
                if refusal.code != "empty-document":
                    raise
        return self._seen[page]

    def _rich(self, text: Text) -> str:
        """Write the rich texts; what they say."""
        shown = ""
        for rich in text.rich:
            name = self._place("rtf").part or ""
            try:
                document = read_rtf(rich, self._options).document
            except Refusal as refusal:
                if refusal.code not in {"empty-document", "corrupt-document"}:
                    raise
                continue
            self._mail.hidden += document.hidden
            self._out.copy(document, name)
            shown += document.markdown
        return shown

    def _place(self, kind: str) -> Place:
        self._numbers[kind] += 1
        return Place(part=f"{kind}-{self._numbers[kind]}")


def _repeats(plain: str, known: Counter[str]) -> bool:
    """Whether nearly every word of a text stands in the pages beside it: some programs put both
    forms of one text one after another."""
    words = Counter(_WORD.findall(plain.lower()))
    return sum((words & known).values()) >= _SAME * sum(words.values())


def _without_title(document: ParsedDocument, subject: str) -> ParsedDocument:
    """The text without a first heading that only says the subject again."""
    first, _, rest = document.markdown.partition("\n")
    if not first.startswith("# ") or _squeezed(first) != _squeezed(subject):
        return document
    cut = len(document.markdown.encode()) - len(rest.encode())
    spans = tuple(
        Span(byte_start=s.byte_start - cut, byte_end=s.byte_end - cut, place=s.place)
        for s in document.spans
        if s.byte_start >= cut
    )
    return document.model_copy(update={"markdown": rest, "spans": spans})


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


# --- EML --------------------------------------------------------------------------------------


def _eml(data: bytes, options: ParseOptions) -> Mail:
    """The mail; of a mailbox the first one, with the others as files."""
    first, *others = _mails(data)
    mail = _first(first, options)
    if not others:
        return mail
    told = f"a mailbox of {len(others) + 1} mails: the first is the text, the others are files"
    mail.warnings.append(told)
    # What is too much for one document is a mailbox again.
    room = max(1, MOST_FILES - len(mail.files))
    if len(others) > room:
        others = [*others[: room - 1], b"\n\n".join(others[room - 1 :])]
    for one in others:
        header = BytesHeaderParser(policy=policy.default).parsebytes(one)
        mail.attach(f"{_header(header, 'Subject') or 'message'}.eml", one)
    return mail


def _mails(data: bytes) -> list[bytes]:
    """The mails of a mailbox, the first without the line that begins it; a mail alone is one."""
    envelope = _ENVELOPE.match(data)
    if envelope is None:
        return [data]
    found = _NEXT_MAIL.finditer(data, envelope.end())
    cuts = [(one.start(), one.start(1)) for one in found if _SENT.search(one[1])]
    starts = [envelope.end(), *(start for _, start in cuts)]
    ends = [*(end for end, _ in cuts), len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def _first(data: bytes, options: ParseOptions) -> Mail:
    try:
        message: Any = BytesParser(policy=policy.default).parsebytes(data)
    except (MessageError, ValueError, LookupError, RecursionError) as error:
        raise Refusal("corrupt-document", "the mail cannot be read") from error
    mail = Mail(
        subject=_header(message, "Subject"),
        headers={name: _header(message, name) for name in _SHOWN},
        sender=_header(message, "From"),
        date=_date(_header(message, "Date")),
    )
    if mail.date:
        mail.headers["Date"] = mail.date.isoformat()
    mail.hidden = [HiddenText(kind="metadata", text=text) for text in _told(message)]
    leaves = list(_leaves(_with_parts(message, data), options.max_depth))
    pages = [_page(part) for part, _ in leaves if _is_body(part, "text/html")]
    inline = {cid.strip("<>") for page in pages for cid in _CID.findall(page.decode("latin-1"))}
    groups: dict[int, Text] = {}
    pictures = 0
    for part, number in leaves:
        group = groups.setdefault(number, Text())
        if _take_text(part, group):
            continue
        if str(part.get("Content-ID", "")).strip("<> ") in inline:
            pictures += 1
        else:
            _attach(mail, part, next(iter(groups.values())))
    mail.texts = [group for group in groups.values() if group.holds]
    if pictures:
        mail.warnings.append(f"{pictures} pictures inside the text were left out")
    return mail


def _told(message: Any) -> Iterator[str]:
    """What a mail says where programs do not show it: in heads, and before and behind its parts."""
    yield from filter(None, (_header(message, name) for name in _HIDDEN))
    others = (name for name in message if name.lower().startswith("x-"))
    heads = [_header(message, name) for name in islice(dict.fromkeys(others), _MOST_HEADS)]
    for part in islice(message.walk(), _MOST_HEADS):
        heads += [_header(part, "Content-Description"), part.preamble or "", part.epilogue or ""]
    # Nearly all mails with parts begin with a word to programs that know none.
    yield from (text for text in heads if is_sentence(text) and not _FOREWORD.search(text))


def _with_parts(message: Any, data: bytes) -> Any:
    """The message; where its parts were not found, by the rules of the library's older reader,
    which takes borders that are not quoted as they should be."""
    whole = (part.is_multipart() or not _is_group(part) for part in message.walk())
    return message if all(whole) else BytesParser(policy=policy.compat32).parsebytes(data)


def _is_group(part: Any) -> bool:
    return str(part.get_content_maintype()) == "multipart"


def _take_text(part: Any, group: Text) -> bool:
    """Whether a part is a form of a text, which is then kept."""
    if _is_body(part, "text/html"):
        group.pages.append(_page(part))
    elif _is_body(part, "text/plain"):
        group.plain.append(_text(part))
    elif _is_body(part, "text/rtf") or _is_body(part, "application/rtf"):
        group.rich.append(_bytes(part))
    elif _is_group(part):
        # No border was found: all that came is text.
        group.plain.append(_text(part))
    elif part.get_content_type() in _REPORTS:
        group.plain.append(_report(part))
    else:
        return False
    return True


def _attach(mail: Mail, part: Any, first: Text) -> None:
    """A file of the mail; if Outlook packed text and files in it, those files, and the forms that
    the first text does not have: it is the same text."""
    data = _bytes(part)
    packed = read_tnef(data)
    if packed is None:
        mail.attach(_file_name(part), data)
        return
    for file in packed.files:
        mail.attach(file.name, file.data)
    mail.warnings += packed.warnings
    for one in packed.texts:
        first.plain = first.plain or one.plain
        first.pages = first.pages or one.pages
        first.rich = first.rich or one.rich


def _report(part: Any) -> str:
    """What a machine says of a mail: blocks of fields, which the library takes for mails."""
    blocks = part.get_payload()
    if not isinstance(blocks, list):
        return _text(part)
    texts = ("\n".join(f"{k}: {plain_line(str(v))}" for k, v in one.raw_items()) for one in blocks)
    return "\n\n".join(text for text in texts if text)


def _header(message: Any, name: str) -> str:
    """A header as one line of text; empty if there is none, or if it cannot be read."""
    try:
        return plain_line(str(message.get(name, "") or ""))
    except (ValueError, LookupError, IndexError, AttributeError, TypeError):
        # The parser of the standard library trips over some malformed addresses.
        return plain_line(str(dict(message.raw_items()).get(name, "")))


def _date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _leaves(message: Any, most: int) -> Iterator[tuple[Any, int]]:
    """Parts that hold something, in order, each with the number of its text: forms of one text
    have the same. An attached mail is a part, not looked into."""
    stack: list[tuple[Any, int, int | None]] = [(message, 0, None)]
    texts = 0
    while stack:
        part, depth, group = stack.pop()
        if depth > most:
            raise Refusal("too-deep", f"parts nested more than {most} deep")
        if _is_group(part) and part.is_multipart():
            if group is None and part.get_content_subtype() == "alternative":
                texts += 1
                group = texts
            stack += [(child, depth + 1, group) for child in reversed(part.get_payload())]
        elif group is not None:
            yield part, group
        else:
            texts += 1
            yield part, texts


def _is_body(part: Any, content_type: str) -> bool:
    named = part.get_content_disposition() == "attachment" or part.get_filename()
    return not named and str(part.get_content_type()) == content_type


def _text(part: Any) -> str:
    data = part.get_payload(decode=True) or b""
    declared = part.get_content_charset()
    if declared in _SEVEN_BITS:
        # Of letters and digits throughout: no guess would find it.
        return str(data.decode("utf-7", "replace"))
    return told_text(data, declared)


def _page(part: Any) -> bytes:
    """A page in UTF-8; as it is where the mail names no charset, since the page may."""
    if part.get_content_charset():
        return _text(part).encode("utf-8", "replace")
    return part.get_payload(decode=True) or b""


def _bytes(part: Any) -> bytes:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        if isinstance(inner, list) and inner and isinstance(inner[0], Message):
            if inner[0].keys():
                return inner[0].as_bytes(policy=policy.compat32)
            # Some programs encode an attached mail, which no rule allows.
            return _bytes_of_encoded(inner[0])
        return b""
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _bytes_of_encoded(inner: Any) -> bytes:
    import base64
    import binascii

    try:
        return base64.b64decode(str(inner.get_payload()), validate=False)
    except (binascii.Error, ValueError):
        return b""


def _file_name(part: Any) -> str:
    name = part.get_filename() or ""
    if not name and part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        subject = _header(inner[0], "Subject") if isinstance(inner, list) and inner else ""
        name = f"{subject or 'message'}.eml"
    return str(name)
