"""Every app that is wanted or runs, by user; and why those that could not start did not."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from toolcrib.sessions.app_state import AppState, AppStateMachine

MOST_FAILED = 1_000
"""How many failed starts are remembered; of more, the oldest are forgotten."""


class AppStates:
    """A user without apps is not kept."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, AppStateMachine]] = {}
        self._failed: OrderedDict[tuple[str, str], AppState] = OrderedDict()
        self.expected: set[AppStateMachine] = set()
        """Those that were asked to connect and have not yet."""

    def get(self, user: str, package: str) -> AppStateMachine | None:
        """Return one app, unless it is stopped."""
        apps = self._users.get(user)
        return None if apps is None else apps.get(package)

    def of(self, user: str) -> tuple[AppStateMachine, ...]:
        """Return a user's apps that are not stopped."""
        return tuple(self._users.get(user, {}).values())

    def __iter__(self) -> Iterator[AppStateMachine]:
        """Go over all apps there are now, whatever becomes of them meanwhile."""
        return iter([life for apps in self._users.values() for life in apps.values()])

    def users(self) -> int:
        """How many users have apps that are not stopped."""
        return len(self._users)

    def add(self, life: AppStateMachine) -> None:
        """Take in an app that is wanted."""
        self._failed.pop((life.user, life.package), None)
        self._users.setdefault(life.user, {})[life.package] = life

    def changed(self, life: AppStateMachine) -> None:
        """Take note of a change; let go of one that has stopped."""
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
        """Forget the failures of an app."""
        for key in [key for key in self._failed if key[1] == package]:
            del self._failed[key]

    def states(self, user: str) -> Mapping[str, AppState]:
        """Say how a user's apps are doing; of stopped ones, those whose start has failed."""
        failed = {package: state for (whose, package), state in self._failed.items() if whose == user}
        return {**failed, **{life.package: life.describe() for life in self.of(user)}}
