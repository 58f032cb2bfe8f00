"""What every form of a mail says, whatever format it came in."""

import codecs
import re
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP

from contracts.artifacts import HiddenText
from kernel.errors import Refusal
from services.converter.parsing.encoding import decode
from services.converter.parsing.literal import plain_line
from services.converter.parsing.result import File

MOST_FILES = 1000
"""Attachments of one mail that are taken."""

MOST_DEPTH = 8
"""Messages within messages that are looked into; each is written by a third larger than it is."""

_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")


@dataclass
class Text:
    """One text of a mail in the forms that it has: a reader sees the page, else the rich text."""

    plain: list[str] = field(default_factory=list)
    pages: list[bytes] = field(default_factory=list)
    rich: list[bytes] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it has any form."""
        return bool(self.plain or self.pages or self.rich)


@dataclass
class Mail:
    """Header, texts in order, and files."""

    subject: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    sender: str = ""
    date: datetime | None = None
    texts: list[Text] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    hidden: list[HiddenText] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def attach(self, name: str, data: bytes) -> None:
        """Note a file under a name that is one; empty files and too many of them are told."""
        number = len(self.files) + 1
        if not data:
            self.warnings.append(f"attachment {number} is empty or cannot be decoded")
        elif number > MOST_FILES:
            told = f"only the first {MOST_FILES} attachments were taken"
            if told not in self.warnings:
                self.warnings.append(told)
        else:
            self.files.append(File(safe_name(name) or f"attachment-{number}", data))


def told_text(data: bytes, charset: str | None) -> str:
    """A text of a mail, which may lie about its charset; signs that no charset has are U+FFFD."""
    try:
        return decode(data, charset, lenient=True)[0]
    except Refusal:
        return data.decode(_known(charset) or "cp1252", "replace").replace("\0", "")


def _known(charset: str | None) -> str | None:
    try:
        return codecs.lookup(charset or "").name
    except LookupError:
        return None


def safe_name(name: str) -> str:
    """A name without folders, control characters and more than 200 bytes."""
    flat = plain_line(_UNSAFE.sub("_", name)).strip(". ")
    flat = "".join(char for char in flat if char.isprintable())
    while len(flat.encode()) > 200:
        stem, dot, suffix = flat.rpartition(".")
        flat = f"{stem[:-1]}.{suffix}" if dot and stem and len(suffix) < 10 else flat[:-1]
    return flat


def as_eml(mail: Mail) -> bytes:
    """A message that lies within another one as a file of its own; same mail, same bytes."""
    out = _part("multipart/mixed")
    out["MIME-Version"] = "1.0"
    for name, told in {"From": mail.sender or "unknown", **mail.headers}.items():
        if told and name != "Date":
            out[name] = told
    out["Subject"] = mail.subject
    if mail.date:
        out["Date"] = mail.date
    for text in mail.texts:
        out.attach(_forms(text))
    for file in mail.files:
        leaf = _leaf("application/octet-stream", file.data)
        leaf.add_header("Content-Disposition", "attachment", filename=file.name)
        out.attach(leaf)
    for number, part in enumerate(out.walk()):
        if part.get_content_maintype() == "multipart":
            # What is inside is base64, in which these signs do not occur.
            part.set_boundary(f"=_{number}_=")
    return out.as_bytes()


def _forms(text: Text) -> EmailMessage:
    group = _part("multipart/alternative")
    for data in text.plain:
        group.attach(_leaf("text/plain; charset=utf-8", data.encode("utf-8", "replace")))
    for kind, datas in (("text/rtf", text.rich), ("text/html", text.pages)):
        for one in datas:
            group.attach(_leaf(kind, one))
    return group


def _part(kind: str) -> EmailMessage:
    part = EmailMessage(policy=SMTP)
    part["Content-Type"] = kind
    return part


def _leaf(kind: str, data: bytes) -> EmailMessage:
    import base64

    leaf = _part(kind)
    leaf["Content-Transfer-Encoding"] = "base64"
    leaf.set_payload(base64.encodebytes(data).decode("ascii"))
    return leaf
