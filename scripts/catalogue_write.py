#!/usr/bin/env python3
"""Write the schemas of the built-in tasks into web/runs/catalogue/ (``make docs``).

The site never imports a task: what it knows of one is these files.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from training.tasks.registry import tasks_list  # noqa: E402

FOLDER = ROOT / "web" / "runs" / "catalogue"


def main() -> None:
    for task in tasks_list():
        entry = {
            "name": task.name,
            "summary": task.summary,
            "params_schema": task.params_model.model_json_schema(),
        }
        path = FOLDER / f"task-{task.name}.json"
        path.write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
