"""Start servers that work together (sentinels, a cluster), and a program that speaks TLS in front of a server."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import subprocess
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from helpers import until
from redis.crc import key_slot
from redis_server import BINARY, Server, free_port

SLOTS = 16384


def asked(port: int, *command: Any) -> Any:
    with closing(redis.Redis(port=port)) as client:
        return client.execute_command(*command)


class Group(ExitStack):
    """Servers that are stopped at the end of the `with` block, also if one of them does not start."""

    def started(self, *options: str) -> Server:
        server = Server(*options)
        self.callback(server.close)
        return server


class Sentinels:
    """A master, its replica, and a sentinel that watches both."""

    def __init__(self, group: Group) -> None:
        self.master = group.started("--repl-diskless-sync-delay", "0")  # otherwise, the replica waits for seconds
        self.replica = group.started("--replicaof", f"127.0.0.1 {self.master.port}", "--repl-diskless-sync-delay", "0")
        until(lambda: asked(self.replica.port, "INFO", "replication").get("master_link_status") == "up")
        self.port = free_port()
        group.callback(_end, self._start_sentinel())
        until(self._is_known)
        self.address = f"redis+sentinel://127.0.0.1:{self.port}/pages"

    def _start_sentinel(self) -> subprocess.Popen[bytes]:
        file = Path(self.master.folder.name, "sentinel.conf")
        file.write_text(
            f"port {self.port}\nbind 127.0.0.1\nsentinel monitor pages 127.0.0.1 {self.master.port} 1\n"
            "sentinel down-after-milliseconds pages 500\nsentinel failover-timeout pages 5000\n"
        )
        command = [BINARY, str(file), "--sentinel"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def _is_known(self) -> bool:
        with suppress(redis.RedisError):
            return len(asked(self.port, "SENTINEL", "REPLICAS", "pages")) == 1
        return False

    def fail_over(self) -> None:
        """Kill the master, and wait until the sentinel names the replica as the new master."""
        asked(self.master.port, "WAIT", 1, 5000)
        self.master.process.kill()
        until(lambda: int(asked(self.port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "pages")[1]) == self.replica.port)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


class Cluster:
    """Three nodes, each with a third of the slots."""

    def __init__(self, group: Group) -> None:
        buses = [free_port() for _ in range(3)]
        options = "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port"
        self.ports = [group.started(*options, str(bus)).port for bus in buses]
        for number, port in enumerate(self.ports):
            first, last = number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1
            asked(port, "CLUSTER", "ADDSLOTSRANGE", first, last)
            asked(port, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for port, bus in zip(self.ports[1:], buses[1:], strict=True):
            asked(self.ports[0], "CLUSTER", "MEET", "127.0.0.1", port, bus)
        until(lambda: all(self._is_whole(port) for port in self.ports))
        self.address = f"redis+cluster://127.0.0.1:{self.ports[0]},127.0.0.1:{self.ports[1]}"

    def _is_whole(self, port: int) -> bool:
        said = str(asked(port, "CLUSTER", "INFO"))
        return "cluster_state:ok" in said and "cluster_known_nodes:3" in said

    def owner(self, key: str) -> int:
        """Return the number of the node that has a key."""
        return key_slot(key.encode()) * 3 // SLOTS

    def move(self, key: str, meanwhile: Callable[[], None]) -> int:
        """Move the slot of a key to the next node, and call `meanwhile` halfway. Return the number of that node."""
        slot, source = key_slot(key.encode()), self.owner(key)
        target = (source + 1) % 3
        ids = [asked(port, "CLUSTER", "MYID").decode() for port in self.ports]
        asked(self.ports[target], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        asked(self.ports[source], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        names = asked(self.ports[source], "CLUSTER", "GETKEYSINSLOT", slot, 1_000_000)
        half = len(names) // 2
        self._migrate(source, target, names[:half])
        meanwhile()
        self._migrate(source, target, asked(self.ports[source], "CLUSTER", "GETKEYSINSLOT", slot, 1_000_000))
        for port in (self.ports[target], self.ports[source]):
            asked(port, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])
        return target

    def _migrate(self, source: int, target: int, names: list[bytes]) -> None:
        asked(self.ports[source], "MIGRATE", "127.0.0.1", self.ports[target], "", 0, 5000, "KEYS", *names)


def certificate(folder: Path) -> tuple[str, str]:
    """Write a self-signed certificate for 127.0.0.1 and its key. Return the paths of both files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "own.pem", folder / "own.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    return str(paths[0]), str(paths[1])


class TlsFront:
    """A proxy that speaks TLS with clients, and plain TCP with a server."""

    def __init__(self, server: Server, own: str, key: str) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(own, key)
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._front = self._done(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context))
        self.port = self._front.sockets[0].getsockname()[1]

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            await asyncio.wait(
                [asyncio.create_task(_copy(reader, requests)), asyncio.create_task(_copy(answers, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            requests.close()
            writer.close()

    def stop(self) -> None:
        self._done(self._cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _cancel(self) -> None:
        self._front.close()  # here, since it is not made for another thread
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await source.read(1 << 16):
            target.write(some)
            await target.drain()
