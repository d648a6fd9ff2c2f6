"""Write the reference: `python -m galatea.cli.reference [FOLDER]`, by default into `docs/reference`.

By default it also writes the measured tables of `docs/explanation/delivery-guarantees.md`, and the dashboards of
`deploy/monitoring/dashboards`.
"""

import sys
from pathlib import Path

from galatea.cli.reference.dashboards import DASHBOARDS
from galatea.cli.reference.files import MEASURED_PAGE, files, measured_page, written_json

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / "docs" / "reference"


def main(folder: Path) -> None:
    """Write it; a file of a thing that is gone is left for git to show."""
    for name, text in files().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
    if not sys.argv[1:]:
        MEASURED_PAGE.write_text(measured_page(), encoding="utf-8")
        for each in DASHBOARDS:
            file = ROOT / "deploy" / "monitoring" / "dashboards" / f"{each.uid}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(written_json(each.json()), encoding="utf-8")
