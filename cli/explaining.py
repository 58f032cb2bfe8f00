"""`kb query --explain` as lines for a person: how hits and a reply came about."""

from datetime import datetime

from cli.output import clean, out
from contracts.query import Asked, HitExplain, LegPlace, QueryExplain

PASSED = {
    "payload": "by the spans that the vectors carry",
    "named": "only versions that were named",
    "sifted": "what was found was sifted by Postgres",
}


def hit(note: HitExplain) -> None:
    """Its place in each leg, and what makes it valid."""
    out(f"   dense    {_place(note.dense, 'cosine')}")
    out(f"   keyword  {_place(note.keyword, 'BM25')}")
    reranked = "" if note.rerank_score is None else f", reranked {note.rerank_score:.4f}"
    out(f"   fused    place {note.fused_rank}{reranked}")
    until = "" if note.recorded_until is None else f" until {note.recorded_until:%Y-%m-%d %H:%M}"
    out(
        f"   valid    said {note.recorded_from:%Y-%m-%d %H:%M}{until}; {PASSED[note.passed]}"
        f" (generation {note.generation})"
    )


def reply(note: QueryExplain) -> None:
    """What the question was made into, what each leg brought, how long each step took."""
    known = "now" if note.known is None else _moment(note.known)
    out(f"valid at   {_moment(note.moment)}, by what is known {known}")
    words = clean(", ".join(note.words), one_line=True)
    out(f"words      {words} (keyword mode {note.keyword_mode})")
    for project in note.asked:
        out(f"asked      {_asked(project)}")
    for name, leg in (("dense", note.dense), ("keyword", note.keyword)):
        refused = f", {leg.found - leg.valid} not valid" if leg.found > leg.valid else ""
        out(f"{name:<10} {leg.found} of at most {note.depth} passages{refused}")
    read = f", {note.reranked} read by the reranker" if note.reranked else ""
    read += f", {note.twins} folded as twins" if note.twins else ""
    looks = f", {note.rounds} looks" if note.rounds > 1 else ""
    out(f"fused      {note.candidates} candidates{read}{looks}")
    out("took ms    " + ", ".join(f"{part} {ms:.1f}" for part, ms in note.took_ms.items()))


def _place(place: LegPlace | None, unit: str) -> str:
    if place is None:
        return "not among its candidates"
    rank = "not valid" if place.rank is None else f"rank {place.rank}"
    raw = f" ({place.raw_rank} before validity)" if place.rank != place.raw_rank else ""
    words = f": {clean(', '.join(place.words), one_line=True)}" if place.words else ""
    return f"{rank}{raw}, {unit} {place.score:.4f}{words}"


def _asked(asked: Asked) -> str:
    counts = {"named": asked.named, "also": asked.also or None, "without": asked.without or None}
    told = "".join(f", {count} {name}" for name, count in counts.items() if count is not None)
    return (
        f"{asked.project}, generation {asked.generation}, {clean(asked.embedder, one_line=True)}; "
        f"{PASSED[asked.passed]}{told}"
    )


def _moment(moment: datetime | None) -> str:
    return "any time" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
