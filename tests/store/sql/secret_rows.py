"""A store with a secret in every column that may hold one, and a look for them in what is on the disk."""

from pathlib import Path

from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.interfaces import AppRecord
from toolcrib.model import JsonObject
from toolcrib.store.key_wrapping import SecretKind, WrappingSecret, WrappingSecrets
from toolcrib.store.sql.store import SqlStore

CANARY = "canary-7c1f09ab"
APP_KEY = "tca_" + CANARY
OVERLAY: JsonObject = {
    "mcp": {
        "servers": {
            "web": {
                "transport": "http",
                "url": f"https://user:{CANARY}@x.example/{CANARY}/mcp?key={CANARY}",
                "headers": {"Authorization": f"Bearer {CANARY}"},
            },
            "program": {
                "transport": "stdio",
                "command": ["run", "--token", CANARY],
                "env": {"TOKEN": CANARY},
            },
        }
    },
    "pins": {"web:tool": "0" * 64},
}
CLEAR = (CANARY.encode(), key_digest(APP_KEY).encode(), signing_secret(APP_KEY).encode())


def wrapping(
    current: str | None, *earlier: str, kind: SecretKind = "admin_key", made: str = ""
) -> WrappingSecrets:
    """Return what a gateway would be given; `made` is the key that is made where none is given."""
    kept = [] if current is None else [WrappingSecret(kind, current.encode())]

    def make() -> WrappingSecret:
        if not kept:
            kept.append(WrappingSecret(kind, made.encode()))
        return kept[0]

    return WrappingSecrets(
        lambda: kept[0] if kept else None,
        make,
        lambda: [WrappingSecret("admin_key", each.encode()) for each in earlier],
    )


async def fill(store: SqlStore) -> None:
    """Store every secret."""
    assert await store.overlay.save(OVERLAY, expected=0) == 1
    app = AppRecord(
        package="com.example.app",
        name="App",
        owner="dev",
        digest=key_digest(APP_KEY),
        signing=signing_secret(APP_KEY),
    )
    assert await store.apps.add(app)


async def check_all_is_read(store: SqlStore) -> None:
    """Read every secret back."""
    assert await store.overlay.load() == (1, OVERLAY)
    for app in (*await store.apps.all(), await store.apps.get("com.example.app")):
        assert app is not None
        assert (app.digest, app.signing) == (key_digest(APP_KEY), signing_secret(APP_KEY))


def clear_text(folder: Path) -> list[str]:
    """Name the files in which a secret stands as it is."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    assert files
    return [path.name for path in files if any(each in path.read_bytes() for each in CLEAR)]
