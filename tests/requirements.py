"""The ledger: every behaviour Toolcrib promises, by id; tests carry the ids, a gate ties both together."""

LEDGER: dict[str, str] = {
    # A. Names: what a tool is called.
    "A1": (
        "A tool is named source:tool, cut at the first colon; neither half is empty, and a tool's own "
        "name has no colon."
    ),
    "A2": (
        "Names come in three styles: qualified, safe and flat. A context picks one, REST falls back to "
        "qualified, MCP and provider formats to safe; MCP refuses qualified, ids become lower snake "
        "case, a bad alias fails the load by its path."
    ),
    "A3": (
        "A safe name is always computed the same way, leads back to its tool, is cut with a hash past "
        "64 characters, and stays the same whatever other sources do."
    ),
    "A4": (
        "When two tools want one name, also by case or Unicode form, the earlier claim keeps it for "
        "good; the later tool is held back and reported until the operator gives it an alias."
    ),
    "A5": (
        "A call may use any name of a tool, with dashes or underscores, on every face; an unknown one "
        "is answered with up to three near names the caller may see, a name with an empty half as "
        "malformed."
    ),
    "A6": "A renamed tool still answers to its former name, a deprecated one until the day it is removed.",
    # B. Sources: where tools come from.
    "B1": (
        "Python functions become tools by decorator, by registration or with a ready definition and "
        "executor; blocking ones leave the event loop free, and arguments arrive as they were sent."
    ),
    "B2": (
        "MCP servers over stdio, streamable HTTP and SSE, in every protocol revision since the first, "
        "are declared in YAML and discovered; their own schemas count, pages and list changes are "
        "followed."
    ),
    "B3": "A mini-app's tools are called by HTTP on the app's public address.",
    "B4": (
        "LangChain tools register singly or as a client's whole list, keep name, schema and bound call, "
        "and behave like every other tool; the package is an optional extra."
    ),
    "B5": "An OpenAPI 3 document gives one tool for each of its operations.",
    "B6": (
        "A source that fails to start is reported and shown down while the rest comes up; its last "
        "tools stay listed as degraded for a while, and it is tried again in the background. One switch "
        "turns all MCP servers off."
    ),
    "B7": (
        "A server's tool list in the config is open when empty and an allowlist with overrides when "
        "not; a listed tool that was not discovered is a warning."
    ),
    "B8": (
        "Servers can be added and listed by core tools; what is added can be called at once and after a "
        "restart. A stdio command needs the operator's permission, and no tool exists to call another "
        "by name."
    ),
    "B9": "Server files of other MCP hosts are imported unchanged.",
    # C. The life of an MCP server.
    "C1": (
        "Stdio servers start eagerly or at first use in a process group of their own, are stopped "
        "politely before they are killed, and leave no orphan, even when the gateway dies."
    ),
    "C2": (
        "A crash is seen at once: calls under way get a typed error within a second, restarts back off "
        "with jitter up to a limit that stable running resets, and a crash loop is visible and retried "
        "every minute."
    ),
    "C3": (
        "A server's stderr goes to the log, limited and redacted, its end to the status page; stray "
        "text on stdout does not stop the reader."
    ),
    "C4": (
        "Handshake and calls have time limits, and a call that timed out or was cancelled is cancelled "
        "upstream too."
    ),
    "C5": (
        "A reload applies only the difference, keeps untouched connections, lets running calls end "
        "before it replaces their server, refuses a bad config whole, and says what is done and what "
        "waits for what."
    ),
    "C6": (
        "Status and test routes show each server's state, last error, restarts, tools and routes, and "
        "no secret."
    ),
    # D. Apps, users, devices.
    "D1": (
        "Apps with their key hash, kind, hardware needs, permissions and tools, and users with their "
        "installed apps, last in SQLite or, by address, in Postgres."
    ),
    "D2": (
        "An app's tool definitions are checked deeply, refused whole with every fault by path, "
        "versioned, and can be read, changed, installed and removed; the next list is right."
    ),
    "D3": (
        "A user's list holds the tools of installed apps that fit the connected device, and what the "
        "context allows of other sources; without a credential, or for an absent user, the answer is "
        "401."
    ),
    "D4": (
        "Hardware decides by need and level: nothing needed fits, no device fits with a warning, "
        "optional never excludes, a missing required part excludes the app; real device profiles ship "
        "with us."
    ),
    "D5": (
        "Executing a tool over REST ends in a code of the one table with its status, class and retry "
        "advice, in the same body shape for every outcome, a refused credential included."
    ),
    "D6": (
        "An app call is found, allowed and validated, then posted under the local name in the shape of "
        "both the design and the real SDK, with the hashed key, within 30 seconds, without touching the "
        "caller's object."
    ),
    "D7": (
        "A sleeping app is woken by webhook and awaited without polling for up to ten seconds; calls at "
        "the same time share the waking, and only those that caused it are told so."
    ),
    "D8": (
        "After a call a connected app keeps running until it idles; waking one does not push aside the "
        "app in front."
    ),
    "D9": "An app passes through six states, and a dropped connection may return within five seconds.",
    "D10": (
        "The gateway keeps no conversation, and the plain install loads no model, agent or LangChain package."
    ),
    "D11": "An unmodified app on the real SDK is installed, woken by a call, and answers it.",
    "D12": (
        "Old tool schemas are migrated from file or store, tried dry first, repeatable and reversible, "
        "while the three old routes answer with a deprecation header until switched off."
    ),
    "D13": (
        "Activation phrases know languages, users switch off tools or apps, have limits and usage "
        "counts of their own, and history lasts where it was asked for."
    ),
    "D14": (
        "Progress and messages of a running tool reach the caller before the result, on MCP, REST and "
        "from apps."
    ),
    "D15": (
        "App authors make tools with one call, get definitions back, and their server answers unknown "
        "tools, failing handlers and failures around them each in its own way; colons in names are "
        "refused."
    ),
    "D16": (
        "What a tool shows, says or reports reaches the user's device as events of a session that has an id."
    ),
    # E. The contract of a tool.
    "E1": (
        "A definition carries everything the contract lists, from a telling description to a "
        "deprecation with its dates."
    ),
    "E1a": (
        "Parameters are described, ids branded, bounds given; our decorator insists, other ways in are "
        "reported on, and what only a person can judge is listed for one."
    ),
    "E2": "Definitions that contradict themselves are refused when they are registered.",
    "E3": (
        "The registry registers, gives back one, all, by category or tag, and validates; a duplicate "
        "needs to be meant."
    ),
    "E4": "Branded ids, paging, sorting, date ranges and shared metadata are ready-made schemas.",
    "E5": (
        "A handler takes parameters and a context with who, which session, which trace and when, and "
        "its input stays as it was."
    ),
    "E6": (
        "A result has data, hints always, and metadata with versions, times, ids and whether it came "
        "from the cache."
    ),
    "E7": (
        "Hints have their eleven required fields and the optional ones, each checked for range and meaning."
    ),
    "E8": "Confidence is calculated from named inputs as documented, and builders cover the usual cases.",
    "E9": "A tool that gives no hints, wherever it comes from, is given complete ones by the gateway.",
    "E10": (
        "Input is checked before and output after a call; a handler that breaks the contract is an "
        "error that names how."
    ),
    "E11": (
        "Errors are of three classes, helpful and free of secrets; traces stay in the log, authors "
        "raise rule errors."
    ),
    "E12": (
        "Category and promised time decide on caching, retry and time limits; rate limits count by user "
        "and tool, cache hits say so, and broken promises are reported."
    ),
    "E13": "Deprecated tools warn, name what replaces them and end on their date.",
    "E14": (
        "The log has one line at the end of each call, and one at its start for declared mutations and "
        "slow calls, redacted and under one trace id; metrics count, time and rate calls."
    ),
    "E15": (
        "One command runs the whole checklist over a module, a config or a running gateway and prints "
        "what is short."
    ),
    "E16": (
        "Published definitions are remembered, and a change that breaks callers fails the check unless "
        "it is versioned."
    ),
    # F. What a model is given.
    "F1": (
        "All tools make one flat list with one level of arguments; those of MCP servers say so where it "
        "helps."
    ),
    "F2": (
        "Every provider's format declares tools, reads calls, writes results and reads cancellations; "
        "schemas are fitted to it, with a report of what was lost, and pass its own SDK."
    ),
    "F3": (
        "Arguments come as object or JSON text, bad JSON is answered with its place, and parallel calls "
        "all get answers."
    ),
    "F4": (
        "A context decides what is shown and, by the same decision, what can be called; no list means "
        "all, an empty one none, a key stays inside its contexts, an unknown one is 404, an entry "
        "without a match warns."
    ),
    "F5": (
        "Energy budgets in four bands hide tools that cost too much for the moment, urgent sees all, "
        "and waiting is a core tool."
    ),
    "F6": (
        "Tools for date and time, web search with an exchangeable backend, and speaker volume come with "
        "the gateway."
    ),
    "F7": "The port is 6740 or the next free one up to 6749, and past that a clear error.",
    "F8": (
        "Large catalogs can be searched, pinned tools stay in sight, and a list too long for a provider "
        "is cut by use."
    ),
    "F9": (
        "Lists are cached by version and never stale; usage is counted per tool with errors and percentiles."
    ),
    # G. Voice.
    "G1": (
        "Every result has a status, a short speakable message and its data; template, field, text and a "
        "fallback supply the message in this order, and errors speak without codes or addresses."
    ),
    "G2": (
        "A call that takes long sends its waiting message once the threshold has passed, where the "
        "provider allows it."
    ),
    "G3": (
        "Results are cut to each provider's size without breaking a character, and raw data stays away "
        "where it must."
    ),
    "G4": "A tool can silence the spoken answer of its turn, and suggested follow-ups are handed on.",
    "G5": (
        "The aviation server turns METAR into spoken ATIS, cached and refreshed, with settings per "
        "aerodrome that are read again when they change, and an offline feed for the demo."
    ),
    # H. The assistant.
    "H1": (
        "The first-party app hears final transcripts, keeps a trimmed history, runs an agent with the "
        "gateway's tools, and shows and speaks its reply."
    ),
    "H2": "Its model is chosen by config, and a scripted one serves tests and the demo.",
    "H3": "It answers by what the device has, and is silent where nothing can speak.",
    # I. Safety and operation.
    "I1": (
        "Who calls is proved by a credential; acting for another needs a key that may. Anonymous and "
        "trusting modes exist for loopback alone and refuse to start elsewhere."
    ),
    "I2": (
        "The YAML config takes variables with defaults, and secrets appear in no log, status, error or "
        "metric."
    ),
    "I3": "Prometheus metrics, structured logs and traces carry the names and fields the designs give.",
    "I4": "The admin page shows and changes servers, tools, contexts, apps, calls and keys.",
    "I5": (
        "Every source has pinned definitions, strict over a network or when added at run time, an SSRF "
        "guard, caps, bulkheads, breakers and a graceful end."
    ),
    "I6": "Replicas on Postgres and Redis behave as one gateway.",
    "I7": (
        "Changes at run time live beside the operator's file, which is never written, and overrides "
        "govern every source."
    ),
    # Second wave.
    "B10": (
        "A Python file is served without a config, its tools are reloaded as a diff when it is saved, "
        "and a module may provide tools asynchronously."
    ),
    "D17": (
        "An app calls tools for its user through its own live session, within what the user granted, "
        "and may start with that session."
    ),
    "E18": (
        "Suggested next actions are derived from the result, its pages, learned sequences or the author, "
        "with complete arguments that validate, for tools this caller can use; otherwise there are none."
    ),
    "E19": (
        "Advice on an error agrees with its code, retryability and outcome; a repair that is certain "
        "comes first, as a call."
    ),
    "E20": (
        "Arguments a tool of the SDK does not declare are refused with the nearest name, and what a tool "
        "declares survives publishing through an app, or publishing is refused."
    ),
    "F10": (
        "A context decides how much of the hints a model sees, in every provider format and on MCP, and "
        "the tokens are counted."
    ),
    "F11": (
        "Live adapters hold a session over a provider's own SDK connection: declare, call concurrently, "
        "cap, announce, cancel and declare again."
    ),
    "G6": (
        "The message of a result is speech: no raw JSON, no unfilled template, cut at a word, with a "
        "fallback sentence per category."
    ),
    "I8": (
        "Every administrative action is recorded append-only: who, from where, what, and the state before "
        "and after without secrets."
    ),
    "I9": (
        "SIGTERM drains: readiness fails first, connections are accepted for a while, running calls "
        "finish, streams end with a retry hint, and the exit status is 0."
    ),
    "I10": (
        "One caller cannot starve another: a source's queue, listeners, sockets and sessions are shared "
        "by principal."
    ),
    "I11": "JWT and OIDC credentials are accepted with issuer discovery, key rotation, audience and scopes.",
    "I12": "HTTPS is served from a certificate and key that are renewed without a restart.",
    "J1": (
        "Steps, rules, sources, formats and stores of third parties are loaded by entry point or dotted "
        "path and pass the public contract suites."
    ),
    "J2": "The gateway mounts under any prefix of any ASGI application and runs on any ASGI server.",
    "J3": "Upstream connections use HTTP proxies, CA bundles and client certificates.",
    "K1": "Upstream credentials are kept per user, encrypted at rest, and never used for another user.",
    "K2": "A policy can require approval before execution, asked on the user's frontend and audited.",
    "K3": "Large results become expiring handles with a preview, read in parts by their caller alone.",
}
