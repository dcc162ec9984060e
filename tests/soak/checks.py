"""The forty-four acceptance checks: what each demands, and why one does not apply yet."""

from dataclasses import dataclass

REPLICAS = "needs replicas: the gateway is one process"
TOTAL = 44


@dataclass(frozen=True)
class Check:
    """One check; tests name the checks they prove by `@pytest.mark.check(NUMBER)`."""

    number: int
    name: str
    not_applicable: str = ""
    """Why nothing is run for it."""
    one_process: bool = False
    """Whether it also has a form for several replicas, of which only that for one process is run."""


CHECKS = tuple(
    Check(number, name)
    if isinstance(name, str)
    else Check(number, name[0], not_applicable=REPLICAS if name[1] else "", one_process=not name[1])
    for number, name in enumerate(
        (
            # Identity and authority.
            "a claimed user id is not an identity, however it is spelled",
            "every route answers every role as its table says",
            "what may be called is what a plain model of the rules allows",
            ("answers never go to another caller", False),
            "nobody starts a program without the permission for it",
            "ids of sessions, streams, states and keys are their owner's alone",
            ("ended keys are refused within seconds, on open streams too", False),
            "credentials of callers do not reach servers and apps",
            # Attacks.
            "no spelling of an address reaches what is forbidden",
            "hostile Host and Origin headers reach no route",
            "a changed definition is hidden until it is approved",
            "no name takes the place of another tool's",
            "hostile servers stall, bloat and slow down nothing",
            "malformed requests crash nothing and good calls succeed",
            "headers and bodies that disagree are refused",
            "secrets are seen nowhere, whatever goes wrong",
            "weak secrets and open key files stop the start",
            "texts of servers run no script in the page; forged forms do nothing",
            "injected SQL, log lines and headers have no effect",
            "configs made to exhaust memory are refused quickly",
            # Nothing lost.
            "kill -9 under load loses and doubles nothing",
            ("kill -9 of one replica after another doubles nothing", True),
            "a fault at any await ends in a result or a typed error",
            "what must not be repeated is not retried",
            ("one idempotency key is one execution", False),
            ("Redis going away fails no call", True),
            ("Postgres going away loses nothing and is got over", False),
            "a full, read-only or locked disk is a typed error and is got over",
            ("rolling restarts fail no request", True),
            "stdio servers that die, hang or talk nonsense leave nothing behind",
            ("a server placed once never acts twice", True),
            "every call that was accepted is in the record, in order",
            # Load.
            "throughput and added latency are within their bounds",
            "overload is refused quickly and goes by",
            "a server that hangs slows down no other",
            ("rate limits are exact", False),
            ("equal calls at once are one execution", False),
            "mixed load with everything coming and going leaks nothing",
            ("a thousand idle streams cost little and hear of changes", False),
            ("ten thousand tools are listed quickly, in the same bytes", False),
            # Conformance and supply.
            "the official conformance suite passes in both eras",
            "generated requests find no fault in the described interface",
            "what is installed is what was locked",
            "no request adds a metric label; open pages name nobody",
        ),
        start=1,
    )
)
