"""Words and charsets of RTF that the reader knows."""

import re

CHARSETS = {
    0: "cp1252", 77: "mac_roman", 78: "shift_jis", 85: "mac_greek", 86: "mac_turkish",
    88: "mac_latin2", 89: "mac_cyrillic", 128: "cp932", 129: "cp949", 130: "johab", 134: "cp936",
    136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256",
    186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
"""Codec by `\\fcharset`; what is not here takes the charset of the document."""

MAC_PAGES = {
    10000: "mac_roman", 10001: "shift_jis", 10006: "mac_greek", 10007: "mac_cyrillic",
    10010: "mac_romanian", 10029: "mac_latin2", 10079: "mac_iceland", 10081: "mac_turkish",
    10082: "mac_croatian",
}  # fmt: skip
"""Codec by the number that Windows gives to a code page of Macs; Python knows the others."""

CODEPAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}

SIGNS = {
    "tab": " ", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ", "qmspace": " ",
    "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
    "zwj": "\u200d", "zwnj": "\u200c",
}  # fmt: skip
"""Characters that are written as words."""

WHOLE = {
    "fldinst": "fldinst",
    "footnote": "footnote", "annotation": "annotation", "listtext": "listtext",
    "pntext": "pntext", "header": "header", "headerl": "header", "headerr": "header",
    "headerf": "header", "footer": "header", "footerl": "header", "footerr": "header",
    "footerf": "header", "shptxt": "shptxt", "stylesheet": "stylesheet", "colortbl": "colors",
    "fonttbl": "fonts", "info": "info", "title": "title", "author": "author",
    "subject": "subject", "keywords": "keywords", "doccomm": "doccomm", "company": "company",
    "creatim": "creatim",
}  # fmt: skip
"""Destinations whose text is wanted as one piece, by their word."""

KEPT = frozenset(
    {
        "annotation",
        "shpinst",
        "shptxt",
        "pntext",
        "listtext",
        "cs",
        "footnote",
        "company",
        "fldinst",
        "ud",
    }
)
"""Destinations that are read although older readers may skip them."""

SKIPPED = frozenset({
    "pict", "objdata", "objclass", "objname", "listtable", "listoverridetable",
    "shprslt", "sp", "sn", "sv", "nonesttables", "xe", "tc", "tcn", "txe", "rxe", "bkmkstart",
    "bkmkend", "atnid", "atnauthor", "atntime", "atndate", "atnref", "atrfstart", "atrfend",
    "atnparent", "revtbl", "rsidtbl", "generator", "themedata", "colorschememapping",
    "datastore", "latentstyles", "filetbl", "mmathPr", "xmlnstbl", "revtim", "printim", "buptim",
    "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "pnseclvl", "template",
    "operator", "manager", "category", "hlinkbase", "do",
})  # fmt: skip
"""Destinations that hold no text of the document."""

HEADING_NAME = re.compile(
    r"\s*(?:heading|überschrift|заголовок|заглавие|наслов|naslov|titre|título)[ _]*([1-9])\b",
    re.IGNORECASE,
)
"""Names of styles of headings, and their level."""
