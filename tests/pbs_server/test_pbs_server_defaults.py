"""What PBS adds to a job, and which vnodes it starts it on: a legal job waits for none of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from pbs_helpers import Server, needs_server, number, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

LONG = ("-l", "walltime=10:00")
OWN = "pliant_test_list"
"""A resource of a site's own."""
ONE, WISH = "1:ncpus=1:ngpus=1", "gpus=1-8+nodes=1-2"
TWO, EIGHT = "1:ngpus=2", "gpus=2:8+nodes=1-2"


@contextmanager
def told(server: Server, *said: str) -> Iterator[None]:
    """Set something of the server, a queue or nodes."""
    server.tell(*(f"set {one}" for one in said))
    try:
        yield
    finally:
        server.tell(*(f"unset {one.partition('=')[0]}" for one in said))


@contextmanager
def halted(server: Server) -> Iterator[None]:
    """Leave submissions to the hooks, which know of pliantd's last look."""
    server.until_seen()
    server.halt()
    try:
        yield
    finally:
        server.go_on()


@contextmanager
def resource(server: Server) -> Iterator[None]:
    """Let there be a resource of vnodes."""
    server.tell(f"create resource {OWN} type=string_array,flag=h")
    try:
        yield
    finally:
        server.empty()  # PBS deletes none that a job has
        server.tell(f"delete resource {OWN}")


def read_anew(server: Server) -> None:
    """Let pliantd read queues and server now, not within a minute."""
    server.stop_pliantd(kill=True)
    server.start_pliantd()


def asked(server: Server, select: str, moldable: str) -> str:
    words = ("-l", f"select={select}", "-l", f"moldable={moldable}", *LONG)
    return server.submit("sleep 600", *words)


def runs_as(server: Server, job_id: str) -> str:
    """Wait until a job runs; return its select."""
    server.run_all(job_id)
    return select_of(server, job_id)


def select_of(server: Server, job_id: str) -> str:
    return str(server.job(job_id)["Resource_List"]["select"])


def use(server: Server, names: Iterable[str], each: str) -> list[str]:
    """Start a job on each of some vnodes."""
    words = ("-l", "place=shared", *LONG)
    jobs = [
        server.submit("sleep 600", "-l", f"select=1:{each}:vnode={one}", *words) for one in names
    ]
    server.run_all(*jobs)
    return jobs


@pytest.mark.parametrize("of", ["server", "queue workq"])
def test_where_each_chunk_has_a_resource_by_default_the_hook_keeps_the_shape(
    server: Server, of: str
) -> None:
    with resource(server), halted(server), told(server, f"{of} default_chunk.{OWN}=workq"):
        assert runs_as(server, asked(server, ONE, WISH)) == ONE


def test_and_so_does_pliantd(server: Server) -> None:
    """Of a job that the hook has seen before there was such a default."""
    server.fill()
    job_id = asked(server, ONE, WISH)
    with resource(server), told(server, f"queue workq default_chunk.{OWN}=workq"):
        read_anew(server)
        words = f"'{OWN}', which each chunk has by default, keeps the shape"
        until(lambda: words in server.pliant("why", number(job_id), check=False))


def test_the_hook_counts_what_a_chunk_has_by_default(server: Server) -> None:
    _, *others = server.nodes()
    use(server, others, "ncpus=2")
    with halted(server), told(server, "queue workq default_chunk.ncpus=4"):
        assert runs_as(server, asked(server, TWO, EIGHT)) == TWO


def test_and_so_does_pliantd_which_writes_no_more_than_the_owner_did(server: Server) -> None:
    first, *others = server.nodes()
    with told(server, "queue workq default_chunk.ncpus=4"):
        read_anew(server)
        use(server, others, "ncpus=2")
        fillers = use(server, others, "ncpus=1:ngpus=4")
        (last,) = use(server, [first], "ncpus=1:ngpus=4")
        job_id = asked(server, TWO, "gpus=2:4:8+nodes=1-2")
        server.run("qdel", *fillers)
        server.until_seen()
        assert select_of(server, job_id) == TWO  # there are GPUs for 2x4, and no cores
        server.run("qdel", last)
        assert runs_as(server, job_id) in (TWO, "1:ngpus=4")
        assert "ncpus=4" in server.job(job_id)["exec_vnode"]


def test_the_place_that_a_queue_gives_keeps_the_shape(server: Server) -> None:
    _, second, *_ = server.nodes()
    use(server, [second], "ncpus=1:ngpus=2")
    with halted(server), told(server, "queue workq resources_default.place=excl"):
        job_id = asked(server, TWO, "gpus=2:6:8+nodes=1-3")
        assert runs_as(server, job_id) == TWO
        assert server.job(job_id)["Resource_List"]["place"] == "excl"


@pytest.mark.parametrize(
    ("said", "words", "name", "gets"),
    [
        (("resources_default.ngpus=1", "resources_default.ncpus=3"), "mem=1gb", "ncpus", 3),
        (("resources_max.mem=12gb",), "ngpus=1", "mem", "12gb"),
    ],
)
def test_what_a_queue_gives_a_job_without_select_is_counted(
    server: Server, said: tuple[str, ...], words: str, name: str, gets: object
) -> None:
    first, *others = server.nodes()
    use(server, others, "ncpus=2:mem=8gb")
    use(server, [first], "ncpus=1:ngpus=2")
    with halted(server), told(server, *(f"queue workq {one}" for one in said)):
        job_id = server.submit("sleep 600", "-l", words, "-l", "moldable=gpus=1:2:4", *LONG)
        server.run_all(job_id)
        has = server.job(job_id)["Resource_List"]
        assert (has["ngpus"], has[name]) == (2, gets)


def test_a_select_that_a_queue_gives_is_the_jobs(server: Server) -> None:
    with halted(server), told(server, f"queue workq resources_default.select={ONE}"):
        job_id = server.submit("sleep 600", "-l", "moldable=gpus=1:4", *LONG)
        assert runs_as(server, job_id) == "1:ncpus=1:ngpus=4"
        server.run("qdel", job_id)
        job_id = server.submit("sleep 600", "-l", "mem=1gb", "-l", "moldable=gpus=1:4", *LONG)
        assert runs_as(server, job_id) == ONE


@pytest.mark.parametrize("of", ["server", "queue workq"])
def test_where_all_that_runs_may_have_so_much_the_hook_makes_none_larger(
    server: Server, of: str
) -> None:
    with halted(server), told(server, f"{of} resources_available.ngpus=2"):
        assert runs_as(server, asked(server, ONE, "gpus=1-4")) == ONE


def test_nor_does_pliantd(server: Server) -> None:
    use(server, server.nodes(), "ncpus=1:ngpus=2")
    fillers = use(server, server.nodes(), "ncpus=1:ngpus=2")
    job_id = asked(server, "1:ncpus=1:ngpus=3", "gpus=3:4+nodes=1-2")
    with told(server, "queue workq resources_available.ngpus=9"):
        read_anew(server)
        server.run("qdel", *fillers)
        for _ in range(2):  # what is seen, and what is made of it
            server.until_seen()
        assert select_of(server, job_id) == "1:ncpus=1:ngpus=3"  # 2x2 would fit, and be 10 in all


def test_a_vnode_that_may_have_no_more_jobs_is_full(server: Server) -> None:
    first, *others = server.nodes()
    use(server, others, "ncpus=1:ngpus=1")
    use(server, [first], "ncpus=1:ngpus=2")
    with told(server, *(f"node {name} max_running=1" for name in others)):
        server.until_seen()
        job_id = asked(server, ONE, "gpus=1-4")
        assert runs_as(server, job_id) == "1:ncpus=1:ngpus=2"
        assert server.vnode_of(job_id) == first


def test_no_job_is_made_for_vnodes_of_another_partition(server: Server) -> None:
    first, *others = server.nodes()
    use(server, [first], "ncpus=1:ngpus=2")
    with told(server, *(f"node {name} partition=pliant_test" for name in others)), halted(server):
        assert runs_as(server, asked(server, ONE, WISH)) == "1:ncpus=1:ngpus=2"
