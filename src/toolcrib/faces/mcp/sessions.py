"""Sessions of the handshake era: the id is a signed token, so any replica can go on with one.

Only what a client says once is in the token: who it is, which revision it speaks, what it can be asked. What
lives in this process alone are its open streams and what is under way on them.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from secrets import token_urlsafe
from time import monotonic, time

import anyio
import orjson

from toolcrib.errors import Refused
from toolcrib.faces.mcp.asked import Peer, Wire
from toolcrib.faces.mcp.questions import Questions
from toolcrib.faces.mcp.revisions import HANDSHAKES
from toolcrib.faces.mcp.running import Running
from toolcrib.model import Caller, JsonObject

MOST_SESSIONS = 10_000
IDLE_SECONDS = 30 * 60.0
LONGEST_LIFE = 7 * 24 * 3600.0
"""After so many seconds a client has to introduce itself again."""

_ASKABLE = ("elicitation", "roots", "sampling")
_MOST_TOKEN = 4096
_MOST_ENDED = 100_000
_MAC = 16
_BARE: JsonObject = {}


class Session:
    """One client that shook hands, and what is under way with it in this process."""

    def __init__(
        self,
        id: str,
        caller: Caller,
        revision: str,
        capabilities: JsonObject,
        client: tuple[str, str],
        *,
        at_home: bool = True,
    ) -> None:
        self.id = id
        self.peer = Peer(
            caller=caller, revision=revision, capabilities=capabilities, client=client, session=self
        )
        self.level: str | None = None
        self.watched: set[str] = set()
        self.found: dict[str, None] = {}
        self.at_home = at_home
        """Whether it was opened here; what one asked elsewhere is answered elsewhere."""
        self.used = 0.0
        self.stream: anyio.CancelScope | None = None
        """The stream on which the client hears what belongs to no request, while it has one open."""
        self.running, self.questions = Running(), Questions()

    @property
    def busy(self) -> bool:
        """Whether something is under way with it."""
        return bool(self.running or self.questions) or self.stream is not None

    async def ask(self, method: str, params: JsonObject, wire: Wire) -> JsonObject:
        """Put a question to the client on the stream of a request."""
        return await self.questions.ask(method, params, wire)

    def take(self, message: JsonObject) -> bool:
        """Take an answer; False where only another replica can know the question."""
        return self.questions.take(message) or self.at_home

    def act_for(self, caller: Caller) -> None:
        """Go by the rights of the request at hand, not of the one that opened the session."""
        self.peer = self.peer._replace(caller=caller)


class Sessions:
    """Opens sessions and knows them again; one of another principal or context is none."""

    def __init__(
        self,
        key: bytes,
        *,
        most: int = MOST_SESSIONS,
        idle_seconds: float = IDLE_SECONDS,
        gone: Callable[[Session], None] = lambda _: None,
    ) -> None:
        self._key, self._most, self._idle, self._gone = key, most, idle_seconds, gone
        # The longest unused come first.
        self._live: OrderedDict[str, Session] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def open(
        self, caller: Caller, revision: str, capabilities: JsonObject, client: tuple[str, str]
    ) -> Session:
        """Open a session for a client that introduces itself."""
        token = _Token(
            nonce=token_urlsafe(16),
            born=int(time()),
            owner=_owner(caller),
            revision=revision,
            capabilities={name: capabilities[name] for name in _ASKABLE if _given(capabilities, name)},
            client=(client[0][:200], client[1][:200]),
        )
        return self._enter(token.signed(self._key), caller, token, at_home=True)

    def find(self, id: str, caller: Caller) -> Session:
        """Return the session of an id; refuse an id that is not this caller's, as if there were no such."""
        session = self._live.get(id)
        if session is None:
            token = _Token.read(id, self._key)
            if token is None or token.nonce in self._ended or time() - token.born > LONGEST_LIFE:
                raise _unknown()
            if token.owner != _owner(caller):
                raise _unknown()
            return self._enter(id, caller, token, at_home=False)
        if session.peer.caller is not caller:
            if _owner(session.peer.caller) != _owner(caller):
                raise _unknown()
            session.act_for(caller)
        session.used = monotonic()
        self._live.move_to_end(id)
        return session

    def end(self, session: Session) -> None:
        """End a session for good."""
        session.questions.close("the client has ended its session")
        if self._live.pop(session.id, None) is not None:
            self._gone(session)
        token = _Token.read(session.id, self._key)
        if token is not None:
            self._ended[token.nonce] = None
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)

    def hush(self) -> None:
        """Ask no client anything more: the answers would find nobody who takes them."""
        for session in self._live.values():
            session.questions.close("the gateway is stopping, and takes no more answers")

    def _enter(self, id: str, caller: Caller, token: "_Token", *, at_home: bool) -> Session:
        self._sweep()
        session = Session(id, caller, token.revision, token.capabilities, token.client, at_home=at_home)
        session.used = monotonic()
        self._live[id] = session
        return session

    def _sweep(self) -> None:
        """Forget what has not been used for long; where it is full, the longest unused that is not busy."""
        limit = monotonic() - self._idle
        for session in tuple(self._live.values()):
            full = len(self._live) >= self._most
            if not full and session.used > limit:
                return
            if not session.busy:
                del self._live[session.id]
                self._gone(session)
        if len(self._live) >= self._most:
            message = f"{self._most} sessions are under way, which is the most; try again shortly"
            raise Refused("OVERLOADED", message, retry_after=5.0)


class _Token:
    """What a session id says, under a signature."""

    __slots__ = ("born", "capabilities", "client", "nonce", "owner", "revision")

    def __init__(
        self,
        *,
        nonce: str,
        born: int,
        owner: str,
        revision: str,
        capabilities: JsonObject,
        client: tuple[str, str],
    ) -> None:
        self.nonce, self.born, self.owner = nonce, born, owner
        self.revision, self.capabilities, self.client = revision, capabilities, client

    def signed(self, key: bytes) -> str:
        """Write it as text that may stand in a header."""
        fields = [self.nonce, self.born, self.owner, self.revision, self.capabilities, self.client]
        body = urlsafe_b64encode(orjson.dumps(fields))
        if len(body) > _MOST_TOKEN:
            # Only capabilities can be that long, and only which of them there are counts for much.
            self.capabilities = dict.fromkeys(self.capabilities, _BARE)
            return self.signed(key)
        return f"{body.decode()}.{urlsafe_b64encode(_mac(body, key)).decode()}"

    @classmethod
    def read(cls, text: str, key: bytes) -> "_Token | None":
        """Read one we have signed; None where we have not."""
        body, _, mac = text.partition(".")
        if len(text) > 2 * _MOST_TOKEN or not text.isascii():
            return None
        expected = urlsafe_b64encode(_mac(body.encode(), key))
        if not hmac.compare_digest(expected, mac.encode()):
            return None
        nonce, born, owner, revision, capabilities, client = orjson.loads(urlsafe_b64decode(body))
        if revision not in HANDSHAKES:
            return None
        return cls(
            nonce=nonce,
            born=born,
            owner=owner,
            revision=revision,
            capabilities=capabilities,
            client=(client[0], client[1]),
        )


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_MAC]


def _owner(caller: Caller) -> str:
    """Whom a session belongs to: a principal in a context, whatever it may do at the moment."""
    named = orjson.dumps((caller.id, caller.user, caller.context))
    return blake2b(named, digest_size=12).hexdigest()


def _given(capabilities: JsonObject, name: str) -> bool:
    return type(capabilities.get(name)) is dict


def _unknown() -> Refused:
    return Refused("NOT_FOUND", "there is no such session; introduce yourself again", path="Mcp-Session-Id")
