"""No value can steer a terminal or reorder a page: terminals, pages and logs show hidden characters written out."""

import csv

import pytest
import structlog
from markupsafe import Markup

from deploy.console import print_fields, print_message, print_table, text_output
from deploy.services import runner
from serving_layer.pages import rendering

HOSTILE = "a\x1b[2J\0\u202eb"
SHOWN = r"a\x1b[2J\0\u202eb"


def test_tables_fields_and_messages_write_hidden_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table((f"[bold]{HOSTILE}",), [(HOSTILE,)])
    print_fields({"name": HOSTILE})
    print_message(f"\n{HOSTILE}")

    out, err = capsys.readouterr()
    assert f"[bold]{SHOWN}" in out.splitlines()[0]
    assert SHOWN in out.splitlines()[1]
    assert out.splitlines()[2].endswith(SHOWN)
    assert err == f"\n{SHOWN}\n"


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, SHOWN), (False, HOSTILE)])
def test_text_output_writes_hidden_characters_out_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shown: str, *, is_terminal: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)

    csv.writer(text_output(), lineterminator="\n").writerows([["name"], [HOSTILE]])
    csv.writer(text_output()).writerow(["last"])

    assert capsys.readouterr().out == f"name\n{shown}\nlast{'' if is_terminal else chr(13)}\n"


def test_pages_write_hidden_characters_out_and_keep_markup() -> None:
    template = rendering.ENVIRONMENT.from_string("{{ text }}|{{ markup }}|{{ number }}|{{ lines }}")

    page = template.render(text=f"<{HOSTILE}>", markup=Markup("<b>\u00ad</b>"), number=7, lines="a\n\tb")

    assert page == f"&lt;{SHOWN}&gt;|<b>\u00ad</b>|7|a\n\tb"


def test_logs_write_hidden_characters_out() -> None:
    event = runner.write_hidden_out(
        None, "info", {"event": HOSTILE, "error": ValueError(HOSTILE), "count": 3, "done": True, "none": None}
    )

    assert event == {"event": SHOWN, "error": SHOWN, "count": 3, "done": True, "none": None}
    assert "\x1b" not in structlog.processors.LogfmtRenderer(bool_as_flag=False)(None, "info", event)
