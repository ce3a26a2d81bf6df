"""Writes docs/output.schema.json: the JSON schema of what `ai --output-format json|stream-json` writes. `make docs` runs it,
a test compares.

python docs/make_schema.py [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from brim.cli.schema import output_schema

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("output.schema.json")
    target.write_text(json.dumps(output_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
