"""Request to an app: a JSON body that old and new apps understand, and signed headers."""

import orjson

from toolcrib.apps.messages import stamp
from toolcrib.apps.signature import proof
from toolcrib.errors import Refused
from toolcrib.formats.traceparent import traceparent
from toolcrib.interfaces import AppRecord
from toolcrib.model import Call, JsonObject

_TRACE = "traceparent"


def body_of(call: Call, now: float) -> bytes:
    """Serialize a call. The fields of the older protocol are sent beside those of the newer one."""
    caller, local = call.caller, call.tool.local
    arguments = orjson.Fragment(_encoded(call.arguments))
    user, moment = caller.user or "", stamp(now)
    return orjson.dumps(
        {
            "name": local,
            "arguments": arguments,
            "context": {
                "userId": user,
                "timestamp": moment,
                "activatedForTool": call.activated,
                "callId": call.id,
                "sessionId": caller.session,
                "language": caller.language,
            },
            "toolId": local,
            "toolParameters": arguments,
            "userId": user,
            "timestamp": moment,
            "callId": call.id,
            "sessionId": caller.session,
        }
    )


def headers_of(call: Call, body: bytes, app: AppRecord, now: float) -> dict[str, str]:
    """Return the headers that authenticate the gateway, sign the body, and propagate the trace."""
    user, tool = call.caller.user or "", call.tool.local
    headers = proof(app.digest, app.signing, user=user, tool=tool, body=body, now=now)
    trace = traceparent(call)
    if trace is not None:
        headers[_TRACE] = trace
    return headers


def _encoded(arguments: JsonObject) -> bytes:
    try:
        return orjson.dumps(arguments)
    except TypeError as error:
        message = f"the arguments cannot be written as JSON: {error}"
        raise Refused("INVALID_ARGUMENTS", message, path="arguments") from error
