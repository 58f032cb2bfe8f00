"""MSG, Outlook's file of one message (MS-OXMSG), by oxmsg; texts in the charset that they are in.

The library gives up at a text that is not in the charset which the message names; many are not.
"""

from collections.abc import Iterator
from email import policy
from email.parser import HeaderParser
from typing import Any

from kernel.errors import Refusal
from services.converter.parsing.letter import MOST_DEPTH, Mail, Text, as_eml, told_text
from services.converter.parsing.literal import plain_line

_SUBJECT, _SENT, _RECEIVED, _HEADERS = 0x0037, 0x0039, 0x0E06, 0x007D
_SENDER, _ADDRESS, _SMTP, _FOR = 0x0C1A, 0x0C1F, 0x5D01, 0x0042
_BODY, _PAGE, _RICH = 0x1000, 0x1013, 0x1009
_NAME, _MAIL, _OTHER_MAIL, _KIND = 0x3001, 0x39FE, 0x3003, 0x0C15
_LONG_NAME, _SHORT_NAME, _SHOWN_NAME, _DATA = 0x3707, 0x3704, 0x3001, 0x3701
_CODEPAGES = (0x3FDE, 0x3FFD)
"""Of the texts of the internet, and of all of the message."""

_STRING, _STRING8, _BINARY = 0x1F, 0x1E, 0x102
_CC, _BCC = 2, 3
_WITHIN, _PROPERTIES = "__substg1.0_3701000D", "__properties_version1.0"
_INNER_HEADER = 24
"""Bytes before the properties of a message within another one."""


def read_msg(data: bytes) -> Mail:
    """The message.

    Raises:
        Refusal: `corrupt-document`.
    """
    from oxmsg import Message

    try:
        message = Message.load(data)
        return _mail(message.properties, message.recipients, message.attachments, 0)
    except Refusal:
        raise
    except Exception as error:
        # A young library: whatever a damaged file makes it raise.
        raise Refusal("corrupt-document", "the message cannot be read") from error


def _mail(properties: Any, recipients: Any, attachments: Any, depth: int) -> Mail:
    charsets = _charsets(properties)

    def text(number: int) -> str:
        return _text(properties, number, charsets)

    head = HeaderParser(policy=policy.compat32).parsestr(text(_HEADERS))
    to, cc = _recipients(recipients, charsets)
    mail = Mail(
        subject=plain_line(text(_SUBJECT)),
        sender=_sender(text, plain_line(_decoded(head.get("From", "")))),
        date=properties.date_prop_value(_SENT) or properties.date_prop_value(_RECEIVED),
    )
    mail.headers = {"From": mail.sender, "To": to, "Cc": cc}
    if mail.date:
        mail.headers["Date"] = mail.date.isoformat()
    mail.texts = _texts(properties, text, next(iter(charsets), None), mail)
    for number, attachment in enumerate(attachments, 1):
        _attach(mail, attachment, number, charsets, depth)
    if not mail.texts:
        mail.warnings.append("the message has no text")
    return mail


def _texts(properties: Any, text: Any, charset: str | None, mail: Mail) -> list[Text]:
    one = Text()
    data = _bytes(properties, _PAGE)
    page = text(_PAGE) if data is None else told_text(data, charset)
    one.pages = [page.encode("utf-8", "replace")] if page else []
    one.plain = [text(_BODY)] if text(_BODY) else []
    packed = _bytes(properties, _RICH)
    if packed and not one.pages:
        rich = unpacked(packed)
        one.rich = [rich] if rich else []
        mail.warnings += [] if rich else ["the formatted text of the message is damaged"]
    return [one] if one.holds else []


def _sender(text: Any, told: str) -> str:
    """Name and address; what the header of the internet says comes first."""
    if told:
        return told
    name = plain_line(text(_SENDER))
    address = plain_line(text(_SMTP) or text(_ADDRESS))
    if address.startswith("/"):
        # A path in the directory of an office.
        address = ""
    if not address:
        return name or plain_line(text(_FOR))
    return f'"{name}" <{address}>' if name else f"<{address}>"


def _decoded(header: Any) -> str:
    from email.errors import HeaderParseError
    from email.header import decode_header, make_header

    try:
        return str(make_header(decode_header(str(header))))
    except (HeaderParseError, LookupError, ValueError):
        return str(header)


def _recipients(found: Any, charsets: list[str]) -> tuple[str, str]:
    """`To` and `Cc`; blind copies are not shown."""
    to: list[str] = []
    cc: list[str] = []
    for recipient in found:
        properties = recipient.properties
        kind = properties.int_prop_value(_KIND)
        name = _text(properties, _NAME, charsets)
        address = _text(properties, _MAIL, charsets) or _text(properties, _OTHER_MAIL, charsets)
        address = "" if address.startswith("/") else address
        text = plain_line(f"{name} <{address}>" if name and address else name or address)
        if kind != _BCC and text:
            (cc if kind == _CC else to).append(text)
    return ", ".join(to), ", ".join(cc)


def _attach(mail: Mail, attachment: Any, number: int, charsets: list[str], depth: int) -> None:
    properties = attachment.properties
    names = (_text(properties, one, charsets) for one in (_LONG_NAME, _SHORT_NAME, _SHOWN_NAME))
    name = next((name for name in names if name), "")
    data = _bytes(properties, _DATA)
    if data is not None:
        mail.attach(name, data)
        return
    inner = _inner(attachment, depth)
    if inner is None:
        mail.warnings.append(f"attachment {number} is an object of another program: not read")
    else:
        mail.warnings += inner.warnings
        mail.attach(f"{inner.subject or name or 'message'}.eml", as_eml(inner))


def _inner(attachment: Any, depth: int) -> Mail | None:
    """The message within an attachment, which is a folder of that."""
    from oxmsg.attachment import Attachment
    from oxmsg.properties import Properties
    from oxmsg.recipient import Recipient

    folders = attachment._storage.storages  # the library tells of no message within
    root = next((one for one in folders if one.name == _WITHIN), None)
    if (
        depth >= MOST_DEPTH
        or root is None
        or not any(one.name == _PROPERTIES for one in root.streams)
    ):
        return None
    return _mail(
        Properties(root, properties_header_offset=_INNER_HEADER),
        [Recipient(one) for one in root.iter_recipient_storages()],
        [Attachment(one) for one in root.iter_attachment_storages()],
        depth + 1,
    )


def unpacked(packed: bytes) -> bytes:
    """The rich text of a message (MS-OXRTFCP); empty if it is damaged."""
    from compressed_rtf import decompress

    try:
        return bytes(decompress(packed))
    except Exception:  # noqa: BLE001 - the library raises nothing more exact
        return b""


# --- properties ---------------------------------------------------------------------------------


def _charsets(properties: Any) -> list[str]:
    """The charsets that the message names, nearest first, as far as they are known."""
    numbers = (properties._cherry_pick_int_prop(one) for one in _CODEPAGES)
    return [name for one in numbers if one is not None for name in _codec(int(one.value))]


def _codec(number: int) -> Iterator[str]:
    import codecs

    from oxmsg.domain.encodings import _CODE_PAGE_ENCODINGS

    for name in (f"cp{number}", _CODE_PAGE_ENCODINGS.get(number, "")):
        try:
            yield codecs.lookup(name).name
        except LookupError:
            continue
        return


def _text(properties: Any, number: int, charsets: list[str]) -> str:
    """A text; of one in another charset than it is told to be, what makes words."""
    for kind in (_STRING, _STRING8):
        data = _raw(properties, number, kind)
        if data is not None and kind == _STRING:
            return data.decode("utf-16-le", "replace").replace("\0", "")
        if data is not None:
            return told_text(data, next(iter(charsets), None))
    return ""


def _bytes(properties: Any, number: int) -> bytes | None:
    return _raw(properties, number, _BINARY)


def _raw(properties: Any, number: int, kind: int) -> bytes | None:
    found = properties._get_property(number, kind)
    if found is None:
        return None
    data = found._storage.property_stream_bytes(number, kind)
    return bytes(data)
