"""Pages drawn for OCR tests: text of our own in every accepted language and script."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FONTS = Path("/usr/share/fonts/truetype")
FACES = {
    "sans": "dejavu/DejaVuSans.ttf",
    "serif": "liberation/LiberationSerif-Regular.ttf",
    "narrow": "dejavu/DejaVuSansCondensed.ttf",
    "bold": "dejavu/DejaVuSans-Bold.ttf",
}
TEXTS = {
    "en": "The council shall publish its yearly report before the end of March. Every member "
    "receives a copy, and anyone may ask for another one at the office.",
    "de": "Der Rat veröffentlicht seinen jährlichen Bericht vor Ende März. Jedes Mitglied erhält "
    "eine Ausfertigung, und wer möchte, kann im Büro eine weitere verlangen.",
    "hr": "Vijeće objavljuje godišnje izvješće prije kraja ožujka. Svaki član dobiva jedan "
    "primjerak, a tko želi može u uredu zatražiti još jedan.",
    "sl": "Svet objavi letno poročilo pred koncem marca. Vsak član prejme en izvod, kdor želi, pa "
    "lahko v pisarni zaprosi še za enega.",
    "sr-Latn": "Savet objavljuje godišnji izveštaj pre kraja marta. Svaki član dobija jedan "
    "primerak, a ko želi može u kancelariji da zatraži još jedan.",
    "sr-Cyrl": "Савет објављује годишњи извештај пре краја марта. Сваки члан добија један "
    "примерак, а ко жели може у канцеларији да затражи још један.",
    "mk": "Советот го објавува годишниот извештај пред крајот на март. Секој член добива еден "
    "примерок, а кој сака може во канцеларијата да побара уште еден.",
    "bg": "Съветът публикува годишния си доклад преди края на март. Всеки член получава един "
    "екземпляр, а който желае, може да поиска още един в канцеларията.",
    "ru": "Совет публикует ежегодный отчёт до конца марта. Каждый участник получает один "
    "экземпляр, а желающий может попросить ещё один в канцелярии.",
}


def font(face: str, size: int) -> ImageFont.FreeTypeFont:
    """A typeface of the machine; the test is skipped where there is none."""
    path = FONTS / FACES[face]
    if not path.exists():
        pytest.skip(f"NOT TESTED: no {path}; apt-get install fonts-dejavu fonts-liberation")
    return ImageFont.truetype(str(path), size)


def drawn(
    text: str, *, face: str = "sans", size: int = 30, width: int = 1200, heading: str = ""
) -> Image.Image:
    """A grey page with a heading over a paragraph."""
    lines = [""]
    letters = font(face, size)
    for word in text.split():
        if letters.getlength(f"{lines[-1]} {word}") > width - 160:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    page = Image.new("L", (width, 260 + round(size * 1.5) * len(lines)), 255)
    pen = ImageDraw.Draw(page)
    if heading:
        pen.text((80, 60), heading, font=font("bold", size * 2), fill=0)
    for number, line in enumerate(lines):
        pen.text((80, 180 + round(size * 1.5) * number), line, font=letters, fill=0)
    return page


def scanned(page: Image.Image, *, angle: float = 0.7, noise: float = 10) -> Image.Image:
    """As a scanner would see it: askew, blurred, noisy."""
    turned = page.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    soft = np.asarray(turned.filter(ImageFilter.GaussianBlur(0.7)), dtype=np.float32)
    grain = np.random.default_rng(7).normal(0, noise, soft.shape)
    return Image.fromarray(np.clip(soft + grain, 0, 255).astype(np.uint8))
