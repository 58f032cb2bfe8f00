"""Mails: EML by the standard library, Outlook's MSG by oxmsg; attachments become documents.

docling reads both, but flattens an HTML body, does not tell what a reader cannot see, and drops
the attachments.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place, Span
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import EML
from services.converter.parsing.encoding import decode
from services.converter.parsing.html import parse_html
from services.converter.parsing.literal import paragraph, plain_line, span
from services.converter.parsing.properties import line
from services.converter.parsing.result import File, Parse
from services.converter.parsing.rtf import read_rtf
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

MOST_FILES = 1000
"""Attachments of one mail that are taken."""

_NAMED_FILES = 20
_SHOWN = ("From", "To", "Cc", "Date")
_HIDDEN = ("comments", "keywords", "thread-topic", "organization", "reply-to", "x-comment")
_CC, _BCC = 2, 3
_RECIPIENT_TYPE, _RICH_TEXT = 0x0C15, 0x1009
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")
_CID = re.compile(r"cid:([^\"'\s>)]+)", re.IGNORECASE)


@dataclass
class _Mail:
    """What both formats say."""

    subject: str
    headers: dict[str, str]
    sender: str
    date: datetime | None
    plain: list[str] = field(default_factory=list)
    html: list[str] = field(default_factory=list)
    rich: list[bytes] = field(default_factory=list)
    """Texts in RTF, which Outlook writes where it has no page."""
    files: list[File] = field(default_factory=list)
    hidden: list[HiddenText] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse_mail(path: Path, media_type: str, options: ParseOptions) -> Parse:
    """A mail: its subject as title, who wrote to whom and when, its text, names of attachments.

    The HTML body, else the rich text, is what a reader sees; a plain-text body that says something
    else is kept for the scanner.

    Raises:
        Refusal: `corrupt-document`, `too-deep`, `too-large`.
    """
    read = _eml if media_type == EML else _msg
    mail = read(path.read_bytes(), options)
    out = Writer(options.max_output_bytes)
    out.heading(mail.subject or "(no subject)", 1, Place(part="header"))
    facts = [f"{name}: {span(mail.headers[name])}" for name in _SHOWN if mail.headers.get(name)]
    if mail.files:
        more = len(mail.files) - _NAMED_FILES
        names = [span(file.name) for file in mail.files[:_NAMED_FILES]]
        facts.append(f"Attachments: {', '.join(names)}" + (f" and {more} more" if more > 0 else ""))
    out.block("\\\n".join(facts), Place(part="header"))
    _body(mail, out, options)
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


def _body(mail: _Mail, out: Writer, options: ParseOptions) -> None:
    head = out.text
    for number, source in enumerate(mail.html, 1):
        try:
            parsed = parse_html(source.encode("utf-8", "replace"), options, article=False)
        except Refusal as refusal:
            if refusal.code != "empty-document":
                raise
            continue
        mail.hidden += parsed.document.hidden
        out.copy(_without_title(parsed.document, mail.subject), f"html-{number}")
    for number, rich in enumerate([] if mail.html else mail.rich, 1):
        try:
            document = read_rtf(rich, options).document
        except Refusal as refusal:
            if refusal.code not in {"empty-document", "corrupt-document"}:
                raise
            continue
        mail.hidden += document.hidden
        out.copy(document, f"rtf-{number}")
    shown = _squeezed(out.text[len(head) :])
    for number, text in enumerate(mail.plain, 1):
        if not shown:
            out.block(paragraph(text, lists=True), Place(part=f"text-{number}"))
        elif text.strip() and _squeezed(text) not in shown:
            # Another text than the one shown: programs read it, people do not.
            mail.hidden.append(HiddenText(kind="notes", text=text.strip()))


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


def _eml(data: bytes, options: ParseOptions) -> _Mail:
    try:
        message: Any = BytesParser(policy=policy.default).parsebytes(data)
    except (MessageError, ValueError, LookupError, RecursionError) as error:
        raise Refusal("corrupt-document", "the mail cannot be read") from error
    mail = _Mail(
        subject=_header(message, "Subject"),
        headers={name: _header(message, name) for name in _SHOWN},
        sender=_header(message, "From"),
        date=_date(_header(message, "Date")),
    )
    if mail.date:
        mail.headers["Date"] = mail.date.isoformat()
    mail.hidden = [
        HiddenText(kind="metadata", text=text)
        for name in _HIDDEN
        if (text := _header(message, name))
    ]
    leaves = list(_leaves(message, options.max_depth))
    pictures = 0
    shown = "".join(_text(part) for part in leaves if _is_body(part, "text/html"))
    inline = {cid.strip("<>") for cid in _CID.findall(shown)}
    for part in leaves:
        if _is_body(part, "text/html"):
            mail.html.append(_text(part))
        elif _is_body(part, "text/plain"):
            mail.plain.append(_text(part))
        elif str(part.get("Content-ID", "")).strip("<> ") in inline:
            pictures += 1
        else:
            _attach(mail, _file_name(part), _bytes(part))
    if pictures:
        mail.warnings.append(f"{pictures} pictures inside the text were left out")
    return mail


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


def _leaves(message: Any, most: int) -> Iterator[Any]:
    """Parts that hold something, in order; an attached mail is one of them, not looked into."""
    stack: list[tuple[Any, int]] = [(message, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > most:
            raise Refusal("too-deep", f"parts nested more than {most} deep")
        if part.get_content_maintype() == "multipart":
            children = part.get_payload()
            if isinstance(children, list):
                stack += [(child, depth + 1) for child in reversed(children)]
        else:
            yield part


def _is_body(part: Any, content_type: str) -> bool:
    named = part.get_content_disposition() == "attachment" or part.get_filename()
    return not named and str(part.get_content_type()) == content_type


def _text(part: Any) -> str:
    data = part.get_payload(decode=True) or b""
    declared = part.get_content_charset()
    return decode(data, declared, lenient=True)[0] if data else ""


def _bytes(part: Any) -> bytes:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        if isinstance(inner, list) and inner and isinstance(inner[0], EmailMessage):
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


def _attach(mail: _Mail, name: str, data: bytes) -> None:
    """Note a file under a name that is one; empty files and too many of them are told."""
    safe = _safe_name(name) or f"attachment-{len(mail.files) + 1}"
    if not data:
        mail.warnings.append(f"attachment {len(mail.files) + 1} is empty or cannot be decoded")
    elif len(mail.files) >= MOST_FILES:
        told = f"only the first {MOST_FILES} attachments were taken"
        if told not in mail.warnings:
            mail.warnings.append(told)
    else:
        mail.files.append(File(safe, data))


def _safe_name(name: str) -> str:
    flat = plain_line(_UNSAFE.sub("_", name)).strip(". ")
    flat = "".join(char for char in flat if char.isprintable())
    while len(flat.encode()) > 200:
        stem, dot, suffix = flat.rpartition(".")
        flat = f"{stem[:-1]}.{suffix}" if dot and stem and len(suffix) < 10 else flat[:-1]
    return flat


# --- MSG --------------------------------------------------------------------------------------


def _msg(data: bytes, _: ParseOptions) -> _Mail:
    from oxmsg import Message

    try:
        return _from_outlook(Message.load(data))
    except Refusal:
        raise
    except Exception as error:
        # A young library: whatever a damaged file makes it raise.
        raise Refusal("corrupt-document", "the message cannot be read") from error


def _from_outlook(message: Any) -> _Mail:
    to, cc = _recipients(message.recipients)
    date = message.sent_date
    sender = plain_line(message.sender or "")
    mail = _Mail(
        subject=plain_line(message.subject or ""),
        headers={"From": sender, "To": to, "Cc": cc},
        sender=sender,
        date=date,
    )
    if date:
        mail.headers["Date"] = date.isoformat()
    if message.html_body:
        mail.html.append(message.html_body)
    if message.body:
        mail.plain.append(message.body)
    packed = message.properties.binary_prop_value(_RICH_TEXT)
    if packed and not mail.html:
        rich = _unpacked(packed)
        mail.rich += [rich] if rich else []
        mail.warnings += [] if rich else ["the formatted text of the message is damaged"]
    for number, attachment in enumerate(message.attachments, 1):
        data = attachment.file_bytes
        if data is None:
            mail.warnings.append(f"attachment {number} is a message inside this one: not read")
        else:
            _attach(mail, attachment.file_name or "", data)
    if not mail.html and not mail.plain and not mail.rich:
        mail.warnings.append("the message has no text")
    return mail


def _unpacked(packed: bytes) -> bytes:
    """The rich text of a message (MS-OXRTFCP); empty if it is damaged."""
    from compressed_rtf import decompress

    try:
        return bytes(decompress(packed))
    except Exception:  # noqa: BLE001 - the library raises nothing more exact
        return b""


def _recipients(found: Iterable[Any]) -> tuple[str, str]:
    """`To` and `Cc`; blind copies are not shown."""
    to: list[str] = []
    cc: list[str] = []
    for recipient in found:
        kind = recipient.properties.int_prop_value(_RECIPIENT_TYPE)
        name, address = recipient.name or "", recipient.email_address or ""
        text = plain_line(f"{name} <{address}>" if name and address else name or address)
        if kind != _BCC:
            (cc if kind == _CC else to).append(text)
    return ", ".join(to), ", ".join(cc)
