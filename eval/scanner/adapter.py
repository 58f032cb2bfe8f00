"""Other people's detectors behind one interface; run as a file by an interpreter that has them.

`python adapter.py NAME`: rows `{id, text}` on standard input; `{id, flag, strict}` for each on
standard output, then `{seconds, bytes}`: processor time of the checks alone. `flag` is the widest
setting that its authors offer as an alarm, `strict` the narrower one where there are two. Imports
only the standard library and the detector.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

Check = Callable[[str], tuple[bool, bool]]
"""(flag, strict)."""


def aicordon() -> Check:
    """Picket, the local rule of AI Cordon: signatures in a compiled automaton."""
    detector = importlib.import_module("aicordon.picket").load()

    def check(text: str) -> tuple[bool, bool]:
        report = detector.check(text)
        severe = any(finding.severity == "high" for finding in report.findings)
        return bool(report.flagged), severe

    return check


def ai_injection_guard() -> Check:
    """`prompt_shield`: weighted regular expressions; alarm at MEDIUM, its default, or above."""
    scanner = importlib.import_module("prompt_shield").PromptScanner()

    def check(text: str) -> tuple[bool, bool]:
        severity = scanner.scan(text).severity
        return severity in ("MEDIUM", "HIGH", "CRITICAL"), severity in ("HIGH", "CRITICAL")

    return check


def pyatr() -> Check:
    """Agent Threat Rules, as bundled; any match, or one of high or critical severity."""
    package = importlib.import_module("pyatr")
    engine = package.ATREngine()
    engine.load_bundled_rules()

    def check(text: str) -> tuple[bool, bool]:
        found = engine.evaluate(package.AgentEvent(content=text, event_type="llm_input"))
        return bool(found), any(match.severity in ("high", "critical") for match in found)

    return check


_WINDOW, _STEP = 1500, 1200
"""Characters: its 512 tokens hold no more, and what is behind them it would not read."""


def nanoguard() -> Check:
    """MetatronNanoGuard: a transformer of 17 M parameters in the wheel, over windows."""
    guard = importlib.import_module("nanoguard.scanner").NanoGuard(device="cpu")

    def check(text: str) -> tuple[bool, bool]:
        starts = range(0, max(1, len(text) - _WINDOW + _STEP), _STEP)
        worst = max(guard.scan(text[at : at + _WINDOW]).injection_score for at in starts)
        return worst >= 0.5, worst >= 0.95

    return check


ADAPTERS: dict[str, Callable[[], Check]] = {
    "aicordon": aicordon,
    "ai-injection-guard": ai_injection_guard,
    "pyatr": pyatr,
    "metatronnanoguard": nanoguard,
}


def main(name: str) -> None:
    """Answer every row."""
    check = ADAPTERS[name]()
    seconds, size = 0.0, 0
    for line in sys.stdin:
        row: dict[str, Any] = json.loads(line)
        size += len(row["text"].encode("utf-8", "surrogatepass"))
        began = time.process_time()
        flag, strict = check(row["text"])
        seconds += time.process_time() - began
        print(json.dumps({"id": row["id"], "flag": flag, "strict": strict}), flush=True)
    print(json.dumps({"seconds": seconds, "bytes": size}))


if __name__ == "__main__":
    main(sys.argv[1])
