"""JSON Schemas of all events, generated into `contracts/schemas/`: `python -m contracts.schema`."""

import json
from pathlib import Path

from contracts.events import EVENTS, wire_type

FOLDER = Path(__file__).parent / "schemas"


def rendered() -> dict[str, str]:
    """File name → content for every event in its current shape."""
    return {
        f"{wire_type(cls)}.json": json.dumps(
            cls.model_json_schema(mode="serialization"),
            indent=2,
            sort_keys=True,
            ensure_ascii=False,
        )
        + "\n"
        for cls in EVENTS.values()
    }


def main() -> None:
    """Write the files. Schemas of old versions stay."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
