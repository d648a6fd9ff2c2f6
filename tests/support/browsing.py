"""Somebody with a browser, without a screen: follows links, fills in forms, keeps cookies."""

import asyncio
import html
import re
from urllib.parse import urlencode

import httpx

from tests.support.asking import OPERATOR_KEY, Asking

ORIGIN = "http://galatea"
TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')

MARK, END = re.compile(r"<[^>]+>"), re.compile(r"</(?:p|h\d|li|d[td]|t[hdr]|a|button|title|label)>")


def words(page: str) -> str:
    """The text of a page, without its marks, in one line."""
    return " ".join(html.unescape(MARK.sub("", END.sub(" ", page))).split())


class Browsing:
    """One browser."""

    def __init__(self, asking: Asking, origin: str = ORIGIN) -> None:
        self.asking, self.origin = asking, origin
        self.cookies = httpx.Cookies()

    def get(self, path: str, status: int = 200) -> str:
        """The text of a page, which must have that status."""
        response = self.response("GET", path)
        assert response.status_code == status, response.text
        return response.text

    def words(self, path: str, status: int = 200) -> str:
        """What a page says, without its marks."""
        return words(self.get(path, status))

    def send(self, path: str, *, form_of: str, origin: str | None = ORIGIN, **fields: str) -> httpx.Response:
        """The response to a form that stands on the page `form_of`."""
        found = TOKEN.search(self.response("GET", form_of).text)
        fields = {"token": found[1] if found else "", **fields}
        return self.post(path, urlencode(fields), origin=origin)

    def post(self, path: str, body: str, *, origin: str | None = ORIGIN) -> httpx.Response:
        """The response to a form as it is."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.response("POST", path, headers=kind | ({"Origin": origin} if origin else {}), content=body)

    def sign_in(self, key: str = OPERATOR_KEY, following: str = "/") -> httpx.Response:
        """As with the form of `/login`."""
        return self.send("/login", form_of="/login", key=key, following=following)

    def response(
        self, method: str, path: str, headers: dict[str, str] | None = None, content: str = ""
    ) -> httpx.Response:
        """Redirections are not followed."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.asking.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.origin, cookies=self.cookies) as client:
                found = await client.request(method, path, headers=headers, content=content)
                self.cookies = client.cookies
                return found

        return asyncio.run(ask())
