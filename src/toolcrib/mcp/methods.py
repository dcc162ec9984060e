"""Method names of requests and notifications in both directions."""

# --- requests of a client ---

INITIALIZE = "initialize"
DISCOVER = "server/discover"
PING = "ping"
SET_LEVEL = "logging/setLevel"
LISTEN = "subscriptions/listen"
LIST_TOOLS = "tools/list"
CALL_TOOL = "tools/call"
LIST_RESOURCES = "resources/list"
LIST_TEMPLATES = "resources/templates/list"
READ_RESOURCE = "resources/read"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
LIST_PROMPTS = "prompts/list"
GET_PROMPT = "prompts/get"
COMPLETE = "completion/complete"

SUBJECT_PARAMETERS = {CALL_TOOL: "name", GET_PROMPT: "name", READ_RESOURCE: "uri"}
"""The parameter that identifies the subject of a request; the header Mcp-Name repeats it."""

# --- requests of a server ---

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
LIST_ROOTS = "roots/list"

# --- notifications ---

INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG_MESSAGE = "notifications/message"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LIST_CHANGED = {kind: f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")}
"""The notification of a changed list, by the kind of its entries."""
LIST_SUBSCRIPTIONS = {kind: f"{kind}ListChanged" for kind in LIST_CHANGED}
"""The member of `subscriptions/listen` that subscribes to a list."""
RESOURCE_SUBSCRIPTIONS = "resourceSubscriptions"
"""The member of `subscriptions/listen` that holds the URIs of resources."""
