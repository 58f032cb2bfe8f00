"""The evaluation of search: its figures, sets, configurations and files."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from eval.corpus import EVALDATA
from eval.retrieval import __main__ as command
from eval.retrieval import pipeline, report
from eval.retrieval.metrics import FIGURES, Figure, figure, first_ranks, values
from eval.retrieval.pipeline import Answers, HeldBack, Loaded, Stuck, ask, load, ranking
from eval.retrieval.report import Result
from eval.retrieval.sets import BadSet, Document, RetrievalSet, crossed, limited, read
from eval.retrieval.stacks import BadConfig, Config, parsed, running
from tests.stack import Stack

SCORE = EVALDATA / "tools" / "score.py"


def relevant(**ids: str) -> dict[str, frozenset[str]]:
    return {query: frozenset(names.split()) for query, names in ids.items()}


# -- figures ---------------------------------------------------------------------------------------


def test_each_query_is_measured_by_the_places_of_what_answers_it() -> None:
    wanted = relevant(first="a", second="a", two="a b", late="a", never="a", unasked="a")
    found = values(
        wanted,
        {
            "first": ["a", "x"],
            "second": ["x", "a"],
            "two": ["a", "x", "b"],
            "late": [f"x{n}" for n in range(10)] + ["a"],
            "never": ["x"],
            "of another set": ["a"],
        },
    )
    two = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert {name: list(each) for name, each in found.items()} == {
        "R@1": [1, 0, 1, 0, 0, 0],
        "R@5": [1, 1, 1, 0, 0, 0],
        "R@10": [1, 1, 1, 0, 0, 0],
        "MRR@10": pytest.approx([1, 0.5, 1, 0, 0, 0]),
        "nDCG@10": pytest.approx([1, 1 / math.log2(3), two, 0, 0, 0]),
        "candidate recall": [1, 1, 1, 1, 0, 0],
    }


def test_names_do_not_decide_between_documents() -> None:
    for names in (["a", "z"], ["z", "a"]):
        found = values({"q": frozenset(names[:1])}, {"q": names})
        assert found["R@1"] == [1.0]


def test_the_ideal_of_many_answers_is_ten_of_them() -> None:
    names = [f"d{n}" for n in range(12)]
    assert values({"q": frozenset(names)}, {"q": names})["nDCG@10"] == pytest.approx([1.0])


def test_the_fifty_first_is_no_candidate() -> None:
    names = [f"d{n}" for n in range(51)]
    found = values(relevant(in_="d49", out="d50"), {"in_": names, "out": names})
    assert list(found["candidate recall"]) == [1, 0]


def test_an_interval_is_the_same_each_time_and_as_wide_as_theory_says() -> None:
    each = np.array([1.0] * 60 + [0.0] * 40)
    found = figure(each)
    assert found == figure(each) and found.mean == 0.6
    half = 1.96 * math.sqrt(0.6 * 0.4 / 100)
    assert (found.low, found.high) == pytest.approx((0.6 - half, 0.6 + half), abs=0.011)


def test_another_seed_gives_another_interval() -> None:
    each = np.random.default_rng(1).random(50)
    assert figure(each, seed=1) != figure(each, seed=2)


def test_one_query_has_no_interval_and_equal_ones_have_no_width() -> None:
    assert figure(np.array([1.0])) == Figure(1.0, None, None)
    assert figure(np.ones(20)) == Figure(1.0, 1.0, 1.0)


def test_first_ranks_count_from_one() -> None:
    wanted = relevant(a="x y", b="x", c="x")
    assert first_ranks(wanted, {"a": ["n", "y", "x"], "b": ["n"]}) == {"a": 2, "b": None, "c": None}


# -- sets ------------------------------------------------------------------------------------------


def folder(
    at: Path, documents: str, queries: str = "q1 q2 q3", qrels: str = "q1 a,q2 b,q3 c"
) -> Path:
    at.mkdir(parents=True)
    corpus = ({"_id": d, "title": f"T {d}", "text": f"text {d}\u2028on"} for d in documents.split())
    asked = ({"_id": q, "text": f"where is {q}", "lang": "en"} for q in queries.split())
    for name, rows in (("corpus", corpus), ("queries", asked)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (at / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    pairs = (pair.replace(" ", "\t") + "\t1\n" for pair in qrels.split(","))
    (at / "qrels.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *pairs]), "utf-8")
    return at


def test_a_set_is_read_as_it_is(tmp_path: Path) -> None:
    found = read(folder(tmp_path / "xy" / "en", "a b c"))
    assert (found.name, [d.id for d in found.documents]) == ("xy/en", ["a", "b", "c"])
    assert found.queries["q2"] == "where is q2"
    assert found.relevant == relevant(q1="a", q2="b", q3="c") and found.notes == {}
    assert found.documents[0] == Document("a", "T a", "text a\u2028on")


def test_what_is_odd_in_a_set_is_told_and_counts_as_other_tools_count_it(tmp_path: Path) -> None:
    found = read(folder(tmp_path / "s", "a", "q1 q2 extra", "q1 a,q1 gone,q2 b,silent a"))
    assert set(found.queries) == {"q1", "q2"} and set(found.relevant) == {"q1", "q2", "silent"}
    assert sorted(found.notes.values()) == [1, 1, 2]


def test_a_document_judged_irrelevant_answers_nothing(tmp_path: Path) -> None:
    at = folder(tmp_path / "s", "a b")
    (at / "qrels.tsv").write_text("q\td\ts\nq1\ta\t0\nq1\tb\t2\n", "utf-8")
    assert read(at).relevant == relevant(q1="b")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n' * 2, "more than once"),
        ("corpus.jsonl", "{broken", "corpus.jsonl"),
        ("queries.jsonl", '{"id": 1}', "without _id"),
        ("qrels.tsv", "head\nq1 a 1\n", "not query"),
        ("qrels.tsv", "head\n", "no relevant"),
        ("qrels.tsv", None, "qrels.tsv"),
    ],
)
def test_a_broken_set_is_refused(tmp_path: Path, name: str, text: str | None, says: str) -> None:
    at = folder(tmp_path / "s", "a b c")
    if text is None:
        (at / name).unlink()
    else:
        (at / name).write_text(text, "utf-8")
    with pytest.raises(BadSet, match=says):
        read(at)


def test_across_languages_ids_that_the_other_corpus_lacks_are_dropped(tmp_path: Path) -> None:
    found = read(folder(tmp_path / "s" / "de", "a b c", qrels="q1 a,q1 b,q2 b,q3 c"))
    english = folder(tmp_path / "s" / "en", "a c d")
    across = crossed(found, english)
    assert across.name == "s/de against s/en"
    assert [d.id for d in across.documents] == ["a", "c", "d"]
    assert across.relevant == relevant(q1="a", q3="c") and set(across.queries) == {"q1", "q3"}
    assert list(across.notes.values()) == [2, 1]


def test_across_languages_the_other_folder_needs_a_corpus_only(tmp_path: Path) -> None:
    found = read(folder(tmp_path / "s" / "de", "a b c"))
    english = folder(tmp_path / "s" / "en", "a b c")
    for name in ("queries.jsonl", "qrels.tsv"):
        (english / name).unlink()
    assert crossed(found, english).relevant == found.relevant


def test_a_limit_takes_queries_from_all_over_the_set() -> None:
    ids = [f"q{n}" for n in range(10)]
    found = RetrievalSet("s", (), dict.fromkeys(ids, "?"), dict.fromkeys(ids, frozenset("a")))
    assert list(limited(found, 4).queries) == ["q0", "q2", "q5", "q7"]
    assert list(limited(found, 4).relevant) == ["q0", "q2", "q5", "q7"]
    assert limited(found, 10) is found


@pytest.mark.parametrize(
    ("title", "wanted"), [("A\n  b", "# A b\n\ntext\n"), ("", "text\n"), (" ", "text\n")]
)
def test_a_document_is_markdown_with_its_title_on_one_line(title: str, wanted: str) -> None:
    assert Document("a", title, "text").markdown(title=True) == wanted
    assert Document("a", title, "text").markdown(title=False) == "text\n"


# -- configurations --------------------------------------------------------------------------------


def test_a_setting_that_nobody_reads_is_refused() -> None:
    for word in ("KB_KEYWORD_MODE=or", "KB_SEARCH_KEYWORD_MODE", "=or"):
        with pytest.raises(BadConfig, match=re.escape(word)):
            parsed([word])


def test_one_index_serves_settings_that_only_search_reads() -> None:
    search = parsed(["KB_SEARCH_KEYWORD_MODE=and_or", "KB_RERANKER_TOP=5"])
    assert search.name == "KB_SEARCH_KEYWORD_MODE=and_or KB_RERANKER_TOP=5"
    assert search.keeps_index and Config().keeps_index
    assert (Config().name, Config(without="as it runs").name) == ("default", "as it runs")
    assert not parsed(["KB_INDEXER_CHUNK_TOKENS=300"]).keeps_index
    assert not parsed(["KB_RERANKER_TOP=5", "KB_EMBEDDER=hashed"]).keeps_index


class RecordedStack(Stack):
    """Says what `kb` would have been asked."""

    def __init__(self, folder: Path, embedder: str, **settings: str) -> None:
        super().__init__(folder, embedder, **settings)
        self.env, self.words = self._env, list[str]()

    def kb(self, *words: str) -> str:
        self.words.append(" ".join(words))
        return ""


def test_a_stack_has_the_settings_and_is_stopped_whatever_happens(tmp_path: Path) -> None:
    config = Config((("KB_EMBEDDER", "hashed"), ("KB_RERANKER_TOP", "5")))
    with pytest.raises(KeyError), running(tmp_path, config, RecordedStack) as stack:
        assert isinstance(stack, RecordedStack)
        assert (stack.env["KB_EMBEDDER"], stack.env["KB_RERANKER_TOP"]) == ("hashed", "5")
        words = stack.words
        raise KeyError
    assert words == ["up --detach", "down"]


def options(*words: str) -> Any:
    return command.arguments(list(words))


@pytest.mark.parametrize(
    "words",
    [
        ("--config", "KB_NONE=1"),
        ("--url", "http://x", "--key", "k", "--config", "KB_RERANKER_TOP=5"),
        ("--limit", "0"),
        ("--cross", "/nowhere"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    at = str(folder(tmp_path / "s", "a b c"))
    with pytest.raises(SystemExit):
        options(at, *words)
    assert options(at).configs == [Config()]


def test_a_stack_that_runs_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = str(folder(tmp_path / "s", "a b c"))
    monkeypatch.delenv("KB_API_KEY", raising=False)
    with pytest.raises(SystemExit):
        options(at, "--url", "http://x")
    monkeypatch.setenv("KB_API_KEY", "k")
    assert options(at, "--url", "http://x").key == "k"


def test_each_configuration_is_compared_with_the_default(tmp_path: Path) -> None:
    at = str(folder(tmp_path / "s", "a b c"))
    words = ("--config", "KB_RERANKER_TOP=5", "KB_EMBEDDER=hashed", "--config", "KB_RERANKER_TOP=9")
    names = [c.name for c in options(at, *words).configs]
    assert names == ["default", "KB_RERANKER_TOP=5 KB_EMBEDDER=hashed", "KB_RERANKER_TOP=9"]


# -- through a front door --------------------------------------------------------------------------


class Door:
    """A front door: `held` are statuses by corpus id; a query's hits are the ids that it names."""

    def __init__(self, **held: str) -> None:
        self.held, self.uploads, self.asked = held, dict[str, str](), list[dict[str, Any]]()
        self.early = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/documents":
            return self._upload(request.content.decode())
        if path.startswith("/jobs/"):
            return self._job(path.removeprefix("/jobs/"))
        if path.startswith("/documents/"):
            return httpx.Response(200, json={"scan": {"rules": ["r1", "r2", "r3", "r4"]}})
        body = json.loads(request.content)
        self.asked.append(body)
        if body["query"] == "too long":
            return httpx.Response(422, json={"type": "urn:kb:problem:invalid-request"})
        hits = [{"document_id": f"d-{id_}", "score": 1 / n}
                for n, id_ in enumerate(body["query"].split(), 1)]  # fmt: skip
        return httpx.Response(200, json={"results": hits})

    def _upload(self, form: str) -> httpx.Response:
        fields = dict(re.findall(r'name="(\w+)"\r\n\r\n(.*?)\r\n', form))
        assert set(fields) == {"project", "source"}, "nobody is trusted"
        id_ = fields["source"]
        self.uploads[id_] = form
        if self.held.get(id_) == "refused":
            return httpx.Response(415, json={"type": "urn:kb:problem:unsupported-media-type"})
        return httpx.Response(202, json={"document_id": f"d-{id_}", "job_id": f"j-{id_}"})

    def _job(self, job_id: str) -> httpx.Response:
        self.early += 1
        if self.early == 1:
            return httpx.Response(404, json={})
        id_ = job_id.removeprefix("j-")
        status = self.held.get(id_, "indexed")
        error = {"code": "empty-document"} if status == "failed" else None
        job = {"job_id": job_id, "version_id": id_, "status": status, "done": True, "error": error}
        return httpx.Response(200, json=job)

    def client(self) -> httpx.AsyncClient:
        transport = httpx.MockTransport(self)
        return httpx.AsyncClient(transport=transport, base_url="http://door")


DOCUMENTS = tuple(Document(id_, f"Title {id_}", "text") for id_ in "abcde")


async def loaded(door: Door, **options: Any) -> Loaded:
    async with door.client() as client:
        return await load(client, "p", DOCUMENTS, title=options.get("title", True))


async def test_what_is_held_back_is_counted_with_the_reason() -> None:
    door = Door(a="review", b="failed", c="refused")
    found = await loaded(door)
    assert found.held_back == (
        HeldBack("b", "failed", "empty-document"),
        HeldBack("c", "refused", "unsupported-media-type"),
        HeldBack("a", "review", "r1, r2, r3"),
    )
    assert found.ids == {f"d-{id_}": id_ for id_ in "abde"}


async def test_what_is_held_back_may_be_most_of_it() -> None:
    found = await loaded(Door(a="refused", b="refused", c="review"))
    assert [h.id for h in found.held_back] == ["a", "b", "c"]


async def test_an_index_without_documents_gives_no_figures() -> None:
    for held in (dict.fromkeys("abcde", "review"), dict.fromkeys("abcde", "refused")):
        with pytest.raises(Stuck, match="no document"):
            await loaded(Door(**held))


async def test_a_pipeline_that_does_not_move_gives_no_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "STUCK_SECONDS", -1)
    with pytest.raises(Stuck, match="has not ended"):
        await loaded(Door())


async def test_without_titles_nothing_tells_documents_apart_but_their_text() -> None:
    door = Door()
    await loaded(door, title=False)
    assert not any("# Title" in form for form in door.uploads.values())
    assert all('filename="document.md"' in form for form in door.uploads.values())


async def test_questions_are_asked_in_the_project_for_fifty_passages() -> None:
    door = Door()
    base = await loaded(door)
    async with door.client() as client:
        answers = await ask(client, base, {"q1": "b a b", "q2": "too long", "q3": "c"})
    assert answers.order == {"q1": ["b", "a"], "q3": ["c"]}
    assert answers.refused == {"q2": "invalid-request"} and len(answers.milliseconds) == 2
    assert {(b["project"], b["top_k"]) for b in door.asked} == {("p", 50)}


async def test_questions_that_are_all_refused_give_no_figures() -> None:
    door = Door()
    base = await loaded(door)
    async with door.client() as client:
        with pytest.raises(Stuck, match="refused"):
            await ask(client, base, {"q1": "too long"})


def test_the_first_passage_of_a_document_counts() -> None:
    hits = [{"document_id": d, "score": s} for d, s in (("x", 3), ("y", 2), ("x", 1))]
    assert ranking(hits, {"x": "a", "y": "b"}) == [("a", 3), ("b", 2)]


# -- reports ---------------------------------------------------------------------------------------


SET = RetrievalSet(
    "xy/en", tuple(Document(id_, "", "") for id_ in "abcdefgh"), {"q1": "?", "q2": "?", "q3": "?"},
    relevant(q1="a", q2="b", q3="c"), {"queries dropped": 4},
)  # fmt: skip
HELD = tuple(HeldBack(id_, "review", "rule") for id_ in "cdefgh")


def result(config: Config, orders: dict[str, str], base: Loaded | None = None) -> Result:
    rankings = {q: [(id_, 1 / n) for n, id_ in enumerate(ids.split(), 1)]
                for q, ids in orders.items()}  # fmt: skip
    base = base or Loaded("p", {"d-a": "a"}, HELD, 2.0)
    return Result.of(config, SET, base, Answers(rankings, [10.0, 20.0], {"q3": "invalid-request"}))


def two() -> list[Result]:
    first = result(Config(), {"q1": "a", "q2": "a b"})
    other = Config((("KB_RERANKER_TOP", "5"),))
    return [first, result(other, {"q1": "a", "q2": "b"}, first.loaded)]


def test_a_report_names_all_that_is_lost() -> None:
    told = "\n".join(report.lines(SET, two()))
    assert "xy/en: 8 documents, 3 queries\n* 4 queries dropped\n" in told
    assert told.count("6 of 8 documents not indexed: review (c: rule; d: rule") == 1
    assert "h: rule" not in told and "; …)" in told
    assert "* default: 1 of 3 queries have their answers only in those" in told
    assert told.count("1 of 3 queries refused (invalid-request)") == 2


def test_two_configurations_stand_side_by_side_with_their_difference() -> None:
    told = [line.strip("| ") for line in report.lines(SET, two()) if line.startswith("| ")]
    rows = dict(line.split(" | ", 1) for line in told)
    assert set(FIGURES) < set(rows)
    assert rows["R@1"] == (
        "0.3333 [0.000, 1.000] | 0.6667 [0.000, 1.000] | +0.3333 [+0.000, +1.000]"
    )
    assert rows["query p50 / p95"] == "15.0 / 19.5 ms | 15.0 / 19.5 ms"
    assert rows["upload to index, all documents"] == "2.0 s | the same index"


def test_json_has_the_place_of_every_answer(tmp_path: Path) -> None:
    report.write_json(tmp_path / "x.json", report.document(SET, two(), seed=6))
    content = json.loads((tmp_path / "x.json").read_text("utf-8"))
    first, other = content["configurations"]
    assert (content["set"], content["seed"], content["notes"]) == (
        "xy/en",
        6,
        {"queries dropped": 4},
    )
    assert first["ranks"] == {"q1": 1, "q2": 2, "q3": None}
    assert first["differences"] == {} and other["differences"]["R@1"]["mean"] == 1 / 3
    assert len(first["not_indexed"]) == 6 and other["settings"] == {"KB_RERANKER_TOP": "5"}


def test_every_configuration_has_a_run_of_its_own(tmp_path: Path) -> None:
    report.write_runs(tmp_path / "run.tsv", two())
    assert (tmp_path / "run.tsv").read_text() == "q1\ta\t1.0\nq2\ta\t1.0\nq2\tb\t0.5\n"
    assert (tmp_path / "run-2.tsv").read_text() == "q1\ta\t1.0\nq2\tb\t1.0\n"


needs_data = pytest.mark.skipif(not SCORE.is_file(), reason=f"no evaluation data in {EVALDATA}")


def scored(folder: Path, run: Path) -> dict[str, float]:
    command = [sys.executable, str(SCORE), "retrieval", str(folder), str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.replace("'", '"'))
    return found


Cut = Callable[[RetrievalSet], RetrievalSet]


@needs_data
@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("xquad/en", lambda found: found),
        ("gdpr", lambda found: found),
        ("gnome_help/de", lambda found: limited(found, 50)),
        ("gnome_help/sl", lambda f: crossed(f, EVALDATA / "retrieval" / "gnome_help" / "hr")),
    ],
)
def test_figures_equal_those_of_score_py(tmp_path: Path, name: str, cut: Cut) -> None:
    found = cut(read(EVALDATA / "retrieval" / name))
    dice, ids = np.random.default_rng(3), [d.id for d in found.documents]
    rankings = {}
    for query, right in found.relevant.items():
        order = [*dice.choice(ids, 40, replace=False)]
        order.insert(int(dice.geometric(0.2)) - 1, min(right))
        unique = dict.fromkeys(order if dice.random() < 0.9 else order[2:])
        # Equal scores, as fusion gives them: the order in the file decides.
        rankings[query] = [(str(id_), 1 / (1 + n // 2)) for n, id_ in enumerate(unique)]
    base = Loaded("p", {}, (), 1.0)
    made = Result.of(Config(), found, base, Answers(rankings, [1.0]))
    report.write_runs(tmp_path / "run.tsv", [made])
    report.write_qrels(tmp_path / "cut", found)
    told = scored(tmp_path / "cut", tmp_path / "run.tsv")
    ours = {k: round(float(v.mean()), 4) for k, v in made.values.items() if k in told}
    assert {"queries": len(found.relevant), **ours} == told
    assert 0 < told["R@1"] < told["R@10"] < 1
