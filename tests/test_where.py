"""Places where crawls run: the scripts, settings and steps of docs/how-to/where.md, in real crawls."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from cli import rows
from helpers import until
from redis_groups import Group, TlsFront, certificate
from redis_server import Server, free_port
from site_server import Page, Site, article, html
from test_howto import blocks, project, serve, stat

pytestmark = pytest.mark.slow
PAGE = "where.md"


def block(title: str, number: int = 0) -> str:
    return [body for name, body in blocks(PAGE) if name == title][number]


def environment(**more: str) -> dict[str, str]:
    """Return variables with which `scrapy` is that of the Python that runs the test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8", **more}


def shell(folder: Path, command: str, *, fails: bool = False, **env: str) -> subprocess.CompletedProcess[str]:
    made = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=100
    )
    assert (made.returncode != 0) is fails, made.stderr
    return made


# A disk that is gone after the run

SKIPPED = 'NEARDUP_REVISIT = "skip"\n'
CRAWL = "./crawl.sh news -O items.jsonl -a urls="


def container(folder: Path, settings: str = SKIPPED) -> Path:
    """Make the folder of a project as a new container has it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    project(folder, settings, ("crawl.sh", block("crawl.sh")))
    (folder / "crawl.sh").chmod(0o755)
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    if not shutil.which("curl"):
        pytest.skip("no curl")
    return tmp_path / "kept.sqlite"


def test_the_store_is_fetched_and_put_back(tmp_path: Path, a: Site, kept: Path) -> None:
    urls = ",".join(serve(a, 4))
    shell(container(tmp_path / "1"), CRAWL + urls, KEPT=kept.as_uri(), FIRST="1")
    assert len(rows(tmp_path / "1" / "items.jsonl")) == 4
    shutil.rmtree(tmp_path / "1")
    a.pages["/4"] = Page(html(article(4)))
    before = len(a.asked())
    shell(container(tmp_path / "2"), f"{CRAWL}{urls},{a.url}/4", KEPT=kept.as_uri())
    assert [row["url"] for row in rows(tmp_path / "2" / "items.jsonl")] == [f"{a.url}/4"]
    assert a.asked(since=before) == ["/4"]


def test_without_the_store_there_is_no_crawl_and_no_upload(tmp_path: Path, a: Site, kept: Path) -> None:
    shell(container(tmp_path / "1"), CRAWL + ",".join(serve(a, 1)), fails=True, KEPT=kept.as_uri())
    assert (a.asked(), kept.exists()) == ([], False)


def test_a_crawl_that_does_not_start_leaves_the_store(tmp_path: Path, a: Site, kept: Path) -> None:
    folder = container(tmp_path / "1", 'NEARDUP_ACTION = "none"\n')
    shell(folder, CRAWL + ",".join(serve(a, 1)), fails=True, KEPT=kept.as_uri(), FIRST="1")
    assert not kept.exists()


def test_a_container_that_is_stopped_puts_the_store_back(tmp_path: Path, a: Site, kept: Path) -> None:
    folder = container(tmp_path / "1", f"{SKIPPED}DOWNLOAD_DELAY = 0.5\nCONCURRENT_REQUESTS = 1\n")
    urls = serve(a, 60)
    command = ["sh", *shlex.split(CRAWL + ",".join(urls))]
    with subprocess.Popen(command, cwd=folder, env=environment(KEPT=kept.as_uri(), FIRST="1")) as process:
        until(lambda: len(a.asked()) > 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    held = [row["url"] for row in rows(folder / "items.jsonl")]
    assert 0 < len(held) < 60
    before = len(a.asked())
    shell(container(tmp_path / "2"), CRAWL + ",".join(urls), KEPT=kept.as_uri())
    assert len(a.asked(since=before)) == 60 - len(held)
    assert len(rows(tmp_path / "2" / "items.jsonl")) == 60 - len(held)


def test_export_and_import_carry_the_store(tmp_path: Path, a: Site) -> None:
    project(tmp_path, SKIPPED)
    urls = ",".join(serve(a, 3))
    crawl = f"scrapy crawl news -O items.jsonl -a urls={urls} -s NEARDUP_STORE="
    page = (Path(__file__).parents[1] / "docs" / "how-to" / PAGE).read_text(encoding="utf-8")
    carry = [line.removeprefix("    $ ") for line in page.splitlines() if line.startswith("    $ ")]
    shell(tmp_path, " && ".join([f"{crawl}held.sqlite", *carry, "rm held.sqlite", f"{crawl}new.sqlite"]))
    assert (len(a.asked()), rows(tmp_path / "items.jsonl")) == (3, [])


# GitHub Actions


def test_the_steps_of_the_workflow(tmp_path: Path, a: Site) -> None:
    steps = yaml(block(".github/workflows/crawl.yml"))["jobs"]["crawl"]["steps"]
    [path] = [step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/cache")]
    [crawl] = [step["run"] for step in steps if step.get("run", "").startswith("scrapy")]
    urls = ",".join(serve(a, 3))
    for expected in (3, 0):
        job = container(tmp_path / "job")
        if (tmp_path / "cache").exists():
            (job / path).parent.mkdir()
            shutil.copy(tmp_path / "cache", job / path)
        shell(job, f"{crawl} -a urls={urls}")
        assert len(rows(job / "news.jsonl")) == expected
        shutil.copy(job / path, tmp_path / "cache")


def test_the_job_of_the_cluster_runs_the_script_one_at_a_time() -> None:
    spec = yaml(block("cronjob.yaml"))["spec"]
    [container] = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert (container["command"][0], container["env"][0]["name"]) == ("./crawl.sh", "KEPT")
    assert spec["concurrencyPolicy"] == "Forbid"


def yaml(text: str) -> Any:
    return pytest.importorskip("yaml").safe_load(text)


# scrapyd

CONFIGURATION = """
[scrapyd]
bind_address = 127.0.0.1
http_port = {port}
poll_interval = 0.2
eggs_dir = eggs
logs_dir = logs
dbs_dir = dbs
"""


@contextmanager
def scrapyd(folder: Path) -> Iterator[str]:
    """Run scrapyd in a folder; return its address."""
    pytest.importorskip("scrapyd")
    port = free_port()
    (folder / "scrapyd.conf").write_text(CONFIGURATION.format(port=port))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("scrapyd")], cwd=folder, env=environment(), stdout=log, stderr=log
        )
    try:
        until(lambda: b"Site starting on" in (folder / "log").read_bytes())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def egg(folder: Path, settings: str) -> Path:
    """Pack a project as scrapyd wants it, which does not run where the project is."""
    folder.mkdir(exist_ok=True)
    project(folder, settings)
    with zipfile.ZipFile(folder / "news.egg", "w") as packed:
        for name in ("settings.py", "spiders.py"):
            packed.write(folder / name, name)
        packed.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 1.0\nName: news\nVersion: 1\n")
        packed.writestr("EGG-INFO/entry_points.txt", "[scrapy]\nsettings = settings\n")
    return folder / "news.egg"


def job_log(folder: Path, address: str, urls: list[str], version: str) -> str:
    """Have scrapyd run a job; return its log."""
    fields = f"-d project=news -d spider=news -d _version={version} --data-urlencode urls={','.join(urls)}"
    started = json.loads(shell(folder, f"curl -sS {address}/schedule.json {fields}").stdout)
    assert started["status"] == "ok", started

    def is_finished() -> bool:
        with urlopen(f"{address}/listjobs.json?project=news") as answer:
            return any(job["id"] == started["jobid"] for job in json.load(answer)["finished"])

    until(is_finished, 60)
    return (folder / "logs" / "news" / "news" / f"{started['jobid']}.log").read_text()


def test_scrapyd_needs_the_one_line(tmp_path: Path, a: Site, kept: Path) -> None:
    settings = block("settings.py").replace("/var/lib/scrapyd", str(tmp_path))
    one_line = settings.splitlines()[1]
    urls = serve(a, 3)
    with scrapyd(tmp_path) as address:
        for version, lines in (("1", "LOG_LEVEL = 'INFO'\n"), ("2", f"LOG_LEVEL = 'INFO'\n{one_line}\n{SKIPPED}")):
            made = egg(tmp_path / "project", lines)
            add = f"curl -sS {address}/addversion.json -F project=news -F version={version} -F egg=@{made}"
            assert json.loads(shell(tmp_path, add).stdout)["status"] == "ok"
        assert "NEARDUP_STORE" in job_log(tmp_path, address, urls, "1")
        assert a.asked() == []
        assert stat(job_log(tmp_path, address, urls, "2"), "neardup/unique") == "3"
        assert stat(job_log(tmp_path, address, urls, "2"), "neardup/requests/skipped") == "3"
    assert len(a.asked()) == 3


# Servers


def test_a_crawl_over_tls(tmp_path: Path, a: Site) -> None:
    project(tmp_path, block("settings.py", 1) + SKIPPED)
    crawl = "scrapy crawl news -O items.jsonl -a urls=" + ",".join(serve(a, 3))
    with Group() as group:
        own = group.started("--requirepass", "se:cret")
        mine, key = certificate(tmp_path)
        front = TlsFront(own, mine, key)
        group.callback(front.stop)
        address = f"rediss://:se%3Acret@127.0.0.1:{front.port}/0?ssl_ca_certs={mine}"
        for expected in (3, 0):
            made = shell(tmp_path, crawl, NEARDUP_STORE=address)
            assert len(rows(tmp_path / "items.jsonl")) == expected
            assert "cret" not in made.stderr
    assert len(a.asked()) == 3


def test_the_workers_of_the_compose_file(tmp_path: Path, a: Site) -> None:
    services = yaml(block("compose.yaml"))["services"]
    program, *options = services["server"]["command"].split()
    assert program == "valkey-server"
    worker = services["worker"]
    project(tmp_path, block("settings.py", 1) + 'NEARDUP_REVISIT = "drop"\n')
    (tmp_path / "feeds").mkdir()
    urls = serve(a, 20, same=4)
    command = worker["command"].replace("$$", "$").replace("crawl news", f"crawl news -a urls={','.join(urls)}")
    server = Server(*options)
    try:
        address = worker["environment"]["NEARDUP_STORE"].replace("server:6379", f"127.0.0.1:{server.port}")
        started = [
            subprocess.Popen(shlex.split(command), cwd=tmp_path, env=environment(HOSTNAME=name, NEARDUP_STORE=address))
            for name in ("one", "two")[: worker["deploy"]["replicas"]]
        ]
        assert [process.wait(60) for process in started] == [0, 0]
    finally:
        server.close()
    held = [row["url"] for feed in (tmp_path / "feeds").iterdir() for row in rows(feed)]
    assert len(held) == len({*held}) == 16
