"""Table of app sessions by user, and the errors of starts that failed."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from toolcrib.sessions.app_state import AppState, AppStateMachine

MOST_FAILED = 1_000
"""Failed starts that are remembered; the oldest are evicted."""


class AppStates:
    """App sessions that are not stopped, by user; users without any have no entry."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, AppStateMachine]] = {}
        self._failed: OrderedDict[tuple[str, str], AppState] = OrderedDict()
        self.expected: set[AppStateMachine] = set()
        """Sessions that wait for their app to connect."""

    def get(self, user: str, package: str) -> AppStateMachine | None:
        """Return one app session, unless it is stopped."""
        apps = self._users.get(user)
        return None if apps is None else apps.get(package)

    def of(self, user: str) -> tuple[AppStateMachine, ...]:
        """Return a user's app sessions that are not stopped."""
        return tuple(self._users.get(user, {}).values())

    def __iter__(self) -> Iterator[AppStateMachine]:
        """Iterate over a snapshot of all app sessions: they may change during the iteration."""
        return iter([life for apps in self._users.values() for life in apps.values()])

    def users(self) -> int:
        """Return how many users have app sessions that are not stopped."""
        return len(self._users)

    def add(self, life: AppStateMachine) -> None:
        """Add an app session that is starting."""
        self._failed.pop((life.user, life.package), None)
        self._users.setdefault(life.user, {})[life.package] = life

    def changed(self, life: AppStateMachine) -> None:
        """Update the table after a transition; remove a stopped session."""
        if life.state in ("connecting", "resurrecting"):
            self.expected.add(life)
        else:
            self.expected.discard(life)
        if life.state == "stopped":
            self._drop(life)

    def _drop(self, life: AppStateMachine) -> None:
        apps = self._users[life.user]
        del apps[life.package]
        if not apps:
            del self._users[life.user]
        if life.error is not None:
            self._failed[life.user, life.package] = life.describe()
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)

    def forget(self, package: str) -> None:
        """Forget the failed starts of an app."""
        for key in [key for key in self._failed if key[1] == package]:
            del self._failed[key]

    def states(self, user: str) -> Mapping[str, AppState]:
        """Return the states of a user's apps; stopped ones only if their start failed."""
        failed = {package: state for (whose, package), state in self._failed.items() if whose == user}
        return {**failed, **{life.package: life.describe() for life in self.of(user)}}
