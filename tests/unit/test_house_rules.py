"""Rules of the house that no linter knows. Each rule is a function over source text, so that a test
can show that it bites; an exception to a rule is a line here, with its reason."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("contracts", "kernel", "services", "cli")
FOLDERS = (*PRODUCT, "deploy", "docs", "eval", "tests", ".ci")
TEXT = {".py", ".sql", ".md", ".toml", ".yaml", ".html", ".js", ".css", ".json", ".txt", ""}

ENVIRONMENT = {
    "cli/doctor.py": "reports on the settings of a data folder, as the client reads them",
    "cli/client.py": "where the running stack is: .env, then the environment",
    "cli/owner.py": "where the stores are, as the supervisor reads it",
    "cli/stack.py": "the supervisor is the one that hands environments out",
    "deploy/prepare.py": "a one-shot task: its environment is its argument list",
    "kernel/embedder/bundled.py": "the user's cache folder, as other programs find it",
    "kernel/embedder/threads.py": "libraries read thread counts nowhere else",
    "services/converter/process.py": "PATH is all that the parsing child inherits",
    "services/converter/temporary.py": "TMPDIR, which Python would silently pass over",
}
BROAD = {
    "kernel/audit.py": "a document that hurts the auditor costs that look only",
    "kernel/consumer.py": "the one place where every error of a handler has its fate",
    "cli/doctor.py": "a check that fails is a finding, and the others still run",
    "services/converter/weights.py": "whatever the hub's client raises stops the start",
    "services/converter/parsing/outlook.py": "what a damaged message makes a young library raise",
    "services/scanner/rescan.py": "a stored text that hurts its reader costs that text only",
    "services/converter/child.py": "whatever a hostile file makes a library raise is an outcome",
}
HEAVY = frozenset({
    "torch", "docling", "docling_core", "sentence_transformers", "transformers", "onnxruntime",
    "cv2", "pandas", "scipy", "pytesseract", "faststream",
})  # fmt: skip
VECTORS = frozenset({"qdrant_client", "qdrant_edge"})
ENGINES = {
    "kernel.vectors.edge", "kernel.vectors.graph", "kernel.vectors.server", "kernel.vectors.stub",
}  # fmt: skip
"""Loaded when the engine is chosen: they alone may bring their library along."""
IN_THE_CHILD = {
    "services.converter.parsing.docling_plugin", "services.converter.parsing.pdf_assembly",
    "services.converter.parsing.word_backend",
}  # fmt: skip
"""Extends docling's classes; only the parsing child imports it."""
LIGHT = (
    "kernel.relay_service", "services.ingest.app", "services.scanner.app", "services.ui.app",
    "services.converter.app", "cli.main",
)  # fmt: skip
LINES = 600
LONG: dict[str, str] = {}
"""Modules beyond LINES, each with the reason why it is not split. LINES is no target: a module is
split along a seam of its domain, and the ten longest are reported so that one looks in time."""


def python_files(*folders: str) -> Iterator[tuple[str, str]]:
    """`(path from the root, source)`."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), file.read_text("utf-8")


def text_files() -> Iterator[tuple[str, str]]:
    """Every file of the repository that a person wrote."""
    top = [f for f in ROOT.iterdir() if f.is_file() and f.name != ".env"]
    for file in sorted([*top, *(f for d in FOLDERS for f in (ROOT / d).rglob("*"))]):
        if file.is_file() and file.suffix in TEXT and not set(file.parts) & {"__pycache__", "data"}:
            yield file.relative_to(ROOT).as_posix(), file.read_text("utf-8")


def broken(rule: Callable[[str], list[str]], files: Iterator[tuple[str, str]]) -> list[str]:
    """`path: what` of everything that breaks the rule."""
    return [f"{path}: {what}" for path, source in files for what in rule(source)]


def check_exceptions(
    rule: Callable[[str], list[str]], allowed: dict[str, str], *folders: str
) -> None:
    """Only the allowed files break the rule, and every allowance is still needed."""
    breaking = {path for path, source in python_files(*folders) if rule(source)}
    assert breaking == set(allowed)


# -- SQL lives in .sql files -----------------------------------------------------------------------

_SQL = re.compile(
    r"\bselect\b[^.;]*\bfrom\s+\w+|\bselect\s+\w+(\.\w+)?\(|\binsert\s+into\b|\bdelete\s+from\s+\w"
    r"|\bupdate\s+[\w.]+\s+set\b|\b(create|alter|drop)\s+(table|index|schema|role|database|function)"
    r"|\b(grant|revoke)\s+\w+\s+on\b|\btruncate\s+[\w.]+$|^\s*(listen|notify)\s+\w+\s*$",
    re.I,
)


def sql_literals(source: str) -> list[str]:
    tree = ast.parse(source)
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs]
    return [s.value[:60] for s in strings if isinstance(s.value, str) and _SQL.search(s.value)]


def test_sql_is_in_sql_files() -> None:
    assert broken(sql_literals, python_files(*PRODUCT, "deploy", "eval")) == []


@pytest.mark.parametrize(
    "source",
    [
        'q = "SELECT position FROM log.event"',
        'q = f"insert into {table} VALUES (1)"',
        'q = "DELETE FROM read.chunk"',
        'q = "update read.job set state = $1"',
        'q = """\nCREATE TABLE x (y int)"""',
        'q = "select log.append($1)"',
    ],
)
def test_the_sql_rule_bites(source: str) -> None:
    assert sql_literals(source)


def test_the_sql_rule_reads_english() -> None:
    assert sql_literals('"""SELECT x FROM y"""\nsay("select a file. From there, update it")') == []


# -- the environment is read once ------------------------------------------------------------------


def environment_reads(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}:
            found += [node.attr] if ast.unparse(node.value) == "os" else []
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            found += [a.name for a in node.names if a.name in {"environ", "environb", "getenv"}]
    return found


def test_the_environment_is_read_by_settings_only() -> None:
    check_exceptions(environment_reads, ENVIRONMENT, *PRODUCT, "deploy")


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_the_environment_rule_bites(source: str) -> None:
    assert environment_reads(source)


# -- no error is swallowed -------------------------------------------------------------------------


def broad_excepts(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and ast.unparse(node.body[-1]) != "raise":
            kinds = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
            names = {ast.unparse(k) if k else "everything" for k in kinds}
            found += sorted(names & {"Exception", "BaseException", "everything"})
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            found += [a for a in map(ast.unparse, node.args) if a in {"Exception", "BaseException"}]
    return found


def test_cleaning_up_and_raising_again_is_fine() -> None:
    assert broad_excepts("try: x()\nexcept BaseException:\n    y()\n    raise") == []


def test_broad_excepts_are_where_errors_have_their_fate() -> None:
    check_exceptions(broad_excepts, BROAD, *PRODUCT, "deploy")


@pytest.mark.parametrize(
    "source",
    [
        "try: x()\nexcept Exception: pass",
        "try: x()\nexcept: pass",
        "try: x()\nexcept (KeyError, BaseException): pass",
        "with contextlib.suppress(Exception): x()",
    ],
)
def test_the_broad_except_rule_bites(source: str) -> None:
    assert broad_excepts(source)


# -- FastStream: its defaults lose, spin or over-fetch ---------------------------------------------

_POLICY = {
    "pull_sub": r"PullSub\(batch_size=1\b",
    "ack_policy": r"AckPolicy\.MANUAL$",
    "stream": r"JStream\(.*\bdeclare=False\b",
}


def subscriptions(source: str) -> list[ast.Call]:
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return [c for c in calls if getattr(c.func, "attr", "") == "subscriber"]


def careless_subscriptions(source: str) -> list[str]:
    found = []
    for call in subscriptions(source):
        given = {k.arg: ast.unparse(k.value) for k in call.keywords}
        wrong = [n for n, want in _POLICY.items() if not re.match(want, given.get(n, ""))]
        found += [f"line {call.lineno}: {name}" for name in wrong]
    return found


def bus_use(source: str) -> list[str]:
    """Imports of FastStream, and what publishes through it."""
    names = {m for m in imports(source) if m.partition(".")[0] == "faststream"}
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return sorted(names) + [
        c.func.attr
        for c in calls
        if isinstance(c.func, ast.Attribute) and c.func.attr in {"publisher", "subscriber"}
    ]


def imports(source: str) -> set[str]:
    """Modules that are imported anywhere in the source."""
    nodes = list(ast.walk(ast.parse(source)))
    plain = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return plain | {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}


def test_every_subscription_is_pulled_one_by_one_and_acked_by_us() -> None:
    assert subscriptions((ROOT / "kernel/consumer.py").read_text("utf-8"))
    assert broken(careless_subscriptions, python_files(*PRODUCT)) == []


def test_only_the_kernel_knows_the_framework() -> None:
    allowed = {
        "kernel/consumer.py": "subscribes",
        "kernel/service.py": "makes the broker of the process",
    }
    check_exceptions(bus_use, allowed, *PRODUCT)


def test_handlers_know_no_broker_and_no_database() -> None:
    def reaches(source: str) -> list[str]:
        return sorted(m for m in imports(source) if re.match("nats|faststream|asyncpg|aiosql", m))

    handlers = [(p, s) for p, s in python_files("services") if p.endswith("handlers.py")]
    assert handlers
    assert broken(reaches, iter(handlers)) == []


@pytest.mark.parametrize("left_out", ["pull_sub", "ack_policy", "stream"])
def test_the_subscription_rule_bites(left_out: str) -> None:
    given = {
        "pull_sub": "PullSub(batch_size=1, timeout=5)",
        "ack_policy": "AckPolicy.MANUAL",
        "stream": "JStream(STREAM, declare=False)",
    }
    call = "broker.subscriber('x', {})".format
    assert careless_subscriptions(call(", ".join(f"{k}={v}" for k, v in given.items()))) == []
    del given[left_out]
    assert careless_subscriptions(call(", ".join(f"{k}={v}" for k, v in given.items())))


def test_a_batch_or_another_policy_is_careless() -> None:
    source = "b.subscriber('x', pull_sub=PullSub(batch_size=10), ack_policy=AckPolicy.ACK)"
    assert len(careless_subscriptions(source)) == 3


def test_the_framework_rule_bites() -> None:
    assert bus_use("from faststream.nats import NatsBroker\nb.publisher('x')") == [
        "faststream.nats", "publisher",
    ]  # fmt: skip


# -- docstrings ------------------------------------------------------------------------------------


def undocumented(source: str) -> list[str]:
    """The module, event classes and handlers without a docstring."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["module"]
    for node in tree.body:
        is_event = isinstance(node, ast.ClassDef) and any(
            ast.unparse(b).rpartition(".")[2] == "Event" for b in node.bases
        )
        is_handler = isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("on_")
        if is_event or is_handler:
            assert isinstance(node, ast.ClassDef | ast.AsyncFunctionDef)
            found += [] if ast.get_docstring(node) else [node.name]
    return found


def test_modules_events_and_handlers_say_what_they_are() -> None:
    written = ((p, s) for p, s in python_files(*PRODUCT, "deploy", "docs", "eval") if s.strip())
    assert broken(undocumented, written) == []


def test_the_docstring_rule_bites() -> None:
    source = "class Lost(Event): pass\nasync def on_lost(event): pass\ndef helper(): pass"
    assert undocumented(source) == ["module", "Lost", "on_lost"]


# -- words that do not belong here -----------------------------------------------------------------

_LATER = "TO" + "DO|FIX" + "ME|XX" + "X"
_SMALL = "MV" + "P"
_HOSTS = [
    f"{name}\\.{end}"
    for name, end in (
        ("pypi", "org"), ("pythonhosted", "org"), ("pytorch", "org/whl"), ("npmjs", "(org|com)"),
        ("docker", "(io|com)/?$"), ("ghcr", "io"), ("quay", "io"), ("gcr", "io"), ("crates", "io"),
        ("proxy\\.golang", "org"), ("rubygems", "org"), ("anaconda", "(org|com)"),
    )
]  # fmt: skip
_WORDS = re.compile(rf"\b({_LATER}|{_SMALL})\b|\b({'|'.join(_HOSTS)})\b", re.M)


def unwanted(source: str) -> list[str]:
    return [match[0] for match in _WORDS.finditer(source)]


def test_nothing_is_put_off_and_no_registry_is_named() -> None:
    own = ((p, s) for p, s in text_files() if not p.endswith(".min.js"))
    assert broken(unwanted, own) == []


@pytest.mark.parametrize(
    "words",
    [("# TO", "DO: later"), ("# FIX", "ME"), ("an MV", "P"), ("https://pypi", ".org/simple")],
)
def test_the_word_rule_bites(words: tuple[str, str]) -> None:
    assert unwanted("".join(words))


# -- modules can be held in the head ---------------------------------------------------------------


def sizes() -> list[tuple[int, str]]:
    """Lines and path of every product module, largest first."""
    return sorted(((s.count("\n"), p) for p, s in python_files(*PRODUCT)), reverse=True)


def test_no_module_outgrows_the_head(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    found = sizes()
    for lines, path in found[:10]:
        record_testsuite_property(path, lines)
        sys.stdout.write(f"{lines:5} {path}\n")
    assert {path for lines, path in found if lines > LINES} == set(LONG)


def test_test_folders_are_packages() -> None:
    folders = {f.parent for f in (ROOT / "tests").rglob("test_*.py")}
    assert [f for f in folders if not (f / "__init__.py").is_file()] == []


# -- importing does nothing ------------------------------------------------------------------------

_PROBE = Path(__file__).with_name("import_probe.py")


def probe(root: Path, modules: list[str], cwd: Path) -> dict[str, dict[str, list[str]]]:
    """Import `modules` from `root` in one fresh process with an empty environment.

    Returns, for every module in order, `effects` and the `loaded` top-level packages it brought;
    `error` if it cannot be imported.
    """
    done = subprocess.run(
        [sys.executable, "-B", "-P", _PROBE, root, *modules],
        env={}, cwd=cwd, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return found


def all_modules() -> list[str]:
    names = (p.removesuffix(".py").replace("/", ".") for p, _ in python_files(*PRODUCT))
    return [n.removesuffix(".__init__") for n in names]


def test_importing_any_module_has_no_effects_and_brings_nothing_heavy(tmp_path: Path) -> None:
    found = probe(ROOT, [m for m in all_modules() if m not in ENGINES | IN_THE_CHILD], tmp_path)
    assert {m: f["error"] for m, f in found.items() if f["error"]} == {}
    assert {m: f["effects"] for m, f in found.items() if f["effects"]} == {}
    assert {m: f["loaded"] for m, f in found.items() if {*f["loaded"]} & (HEAVY | VECTORS)} == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_an_engine_is_importable_and_brings_no_model(engine: str, tmp_path: Path) -> None:
    (found,) = probe(ROOT, [engine], tmp_path).values()
    assert found["error"] == []
    assert set(found["loaded"]) & VECTORS and not set(found["loaded"]) & HEAVY


def test_light_processes_load_no_engine_either(tmp_path: Path) -> None:
    for module, found in probe(ROOT, [*LIGHT], tmp_path).items():
        assert found["error"] == [], module
        assert not set(found["loaded"]) & (HEAVY | VECTORS), module


@pytest.mark.parametrize(
    "source",
    [
        "open('left', 'w').close()",
        "import pathlib; pathlib.Path('left').mkdir()",
        "import socket; socket.socket()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.environ['KB_LEFT'] = '1'",
    ],
)
def test_the_import_rule_bites(source: str, tmp_path: Path) -> None:
    (tmp_path / "naughty.py").write_text(source)
    assert probe(tmp_path, ["naughty"], tmp_path)["naughty"]["effects"]


def test_a_module_that_needs_an_environment_is_found(tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text("import os; os.environ['KB_API_KEY']")
    assert probe(tmp_path, ["needy"], tmp_path)["needy"]["error"] == ["KeyError: 'KB_API_KEY'"]
