"""Write every page of the reference: `python -m deploy.reference [FOLDER]`, by default into `docs/reference`."""

import sys
from pathlib import Path

from deploy.reference.pages import pages

HERE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def main(folder: Path) -> None:
    """Write them; a page of a thing that is gone is left for git to show."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages().items():
        (folder / f"{name}.md").write_text(page.text(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
