"""Serves the two newspapers on two hosts of the loopback, each in its own page template."""

import socket
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from string import Template
from threading import Thread

from example import papers

TEMPLATES = Path(__file__).parents[1] / "templates"
ARCHIVED = "zh/wetland-birds"  # the Gazette's copy is on a server of its own, which will refuse connections in the end
GONE_FOR_GOOD = "zh/kite-festival"  # nobody else has it


class PageHandler(BaseHTTPRequestHandler):
    server: "Site"

    def do_GET(self) -> None:
        self.server.fetched.append(self.path)
        page = self.server.pages.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "Not found").encode())

    def log_message(self, *args: object) -> None:
        """Prints nothing: the sites keep count themselves."""


class Site(ThreadingHTTPServer):
    """One server on a free port: its pages by path, and the paths it was asked for."""

    daemon_threads = True

    def __init__(self, host: str, address: str, template: str, path: str) -> None:
        super().__init__((address, 0), PageHandler)
        self.url = f"http://{host}:{self.server_address[1]}"
        self.template = Template((TEMPLATES / template).read_text(encoding="utf-8"))
        self.path = path
        self.pages: dict[str, str] = {}
        self.fetched: list[str] = []
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's looks up a host name, which takes seconds on a machine without DNS

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def take_fetched(self) -> list[str]:
        """The paths asked for since the last call."""
        fetched, self.fetched = self.fetched, []
        return fetched

    def publish(self, name: str, article: papers.Article) -> str:
        """Returns the article's URL."""
        path = self.path.format(name)
        paragraphs = "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in article.paragraphs)
        self.pages[path] = self.template.substitute(title=escape(article.title), main=paragraphs)
        return self.url + path

    def publish_list(self, titles: dict[str, str]) -> None:
        links = "\n".join(f'<li><a href="{url}">{escape(title)}</a></li>' for url, title in titles.items())
        self.pages["/"] = self.template.substitute(title="Today", main=f'<ul id="articles">\n{links}\n</ul>')


class Newsstand:
    """The Post on one host; the Gazette and its archive on another. `*_urls` tell where each article is."""

    def __init__(self) -> None:
        post_host, gazette_host = loopback_hosts()
        self.post = Site(*post_host, "post.html", "/{}.html")
        self.gazette = Site(*gazette_host, "gazette.html", "/story/{}")
        self.archive = Site(*gazette_host, "gazette.html", "/archive/{}")
        self.sites = {"Post": self.post, "Gazette": self.gazette, "Archive": self.archive}
        self.post_urls = self._publish(self.post, papers.post())
        self.gazette_urls = self._publish(self.gazette, papers.gazette())

    def __enter__(self) -> "Newsstand":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for site in self.sites.values():
            site.stop()

    def close_gazette(self) -> None:
        """Its list page still links to the copies, but they answer 404, and its archive refuses connections."""
        for name in {*self.post_urls, GONE_FOR_GOOD} - {ARCHIVED}:
            del self.gazette.pages[f"/story/{name}"]
        self.archive.stop()

    def _publish(self, paper: Site, articles: dict[str, papers.Article]) -> dict[str, str]:
        urls = {}
        for name, article in articles.items():
            site = self.archive if paper is self.gazette and name == ARCHIVED else paper
            urls[name] = site.publish(name, article)
        paper.publish_list({url: articles[name].title for name, url in urls.items()})
        return urls


def loopback_hosts() -> list[tuple[str, str]]:
    """Two hosts, each with the address to bind. Where 127.0.0.2 is none (macOS), two names of one address must do."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
    except OSError:
        return [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")]
    return [("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")]
