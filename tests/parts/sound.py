"""PulseAudio and PipeWire without a sound card: private servers with a null speaker."""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.parts.install import Missing, apt, on_path

_SECONDS = 15.0
_PULSE = ("pulseaudio", "pactl", "amixer")
_PIPEWIRE = ("pipewire", "wireplumber", "wpctl", "pw-cli", "dbus-daemon")
_ALSA_OVER_PULSE = "pcm.!default { type pulse }\nctl.!default { type pulse }\n"
_NULL_SINK = (
    "{ factory.name=support.null-audio-sink node.name=crib media.class=Audio/Sink"
    " object.linger=true audio.position=[FL FR] }"
)


def find_pulseaudio() -> Path | None:
    return on_path("pulseaudio") if all(on_path(name) for name in _PULSE) else None


def fetch_pulseaudio() -> Path:
    apt("pulseaudio", "pulseaudio-utils", "alsa-utils", "libasound2-plugins")
    return _there(find_pulseaudio())


def find_pipewire() -> Path | None:
    return on_path("pipewire") if all(on_path(name) for name in _PIPEWIRE) else None


def fetch_pipewire() -> Path:
    apt("pipewire", "pipewire-bin", "wireplumber", "dbus")
    return _there(find_pipewire())


def _there(found: Path | None) -> Path:
    if found is None:
        raise Missing("apt installed it, yet not all of its programs are on the PATH")
    return found


@contextmanager
def pulseaudio() -> Generator[dict[str, str]]:
    """Run a PulseAudio server; what a program needs in its environment to find it, also through ALSA."""
    with _home() as home:
        folder = Path(home["HOME"])
        socket = folder / "native"
        (folder / "asound.conf").write_text(_ALSA_OVER_PULSE)
        command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        command += ["-L", "module-null-sink sink_name=crib"]
        command += ["-L", f"module-native-protocol-unix socket={socket} auth-anonymous=1"]
        found = {"PULSE_SERVER": f"unix:{socket}", "ALSA_CONFIG_PATH": str(folder / "asound.conf"), **home}
        with _running(command, home):
            _until(lambda: _says(["pactl", "get-sink-volume", "@DEFAULT_SINK@"], found), "PulseAudio")
            yield found


@contextmanager
def pipewire() -> Generator[dict[str, str]]:
    """Run a PipeWire server with its session keeper; what a program needs in its environment to find it."""
    with ExitStack() as stack:
        home = stack.enter_context(_home())
        folder = Path(home["HOME"])
        bus = f"unix:path={folder / 'bus'}"
        found = {"DBUS_SESSION_BUS_ADDRESS": bus, **home}
        bus_command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={bus}"]
        stack.enter_context(_running(bus_command, found))
        _until((folder / "bus").exists, "the message bus")
        stack.enter_context(_running(["pipewire"], found))
        _until((folder / "pipewire-0").exists, "PipeWire")
        stack.enter_context(_running(["wireplumber"], found))
        create = ["pw-cli", "create-node", "adapter", _NULL_SINK]
        _until(lambda: _says(create, found, wanted=""), "its speaker")
        _until(lambda: _says(["wpctl", "get-volume", "@DEFAULT_AUDIO_SINK@"], found), "its session keeper")
        yield found


@contextmanager
def _home() -> Generator[dict[str, str]]:
    """A place of its own, so that nothing of the machine's sound is touched. Short: sockets lie in it."""
    with TemporaryDirectory(prefix="sound-") as folder:
        yield {"HOME": folder, "XDG_RUNTIME_DIR": folder, "PATH": os.environ["PATH"]}


@contextmanager
def _running(command: list[str], env: dict[str, str]) -> Generator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def _says(command: list[str], env: dict[str, str], wanted: str = "Volume") -> bool:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return done.returncode == 0 and wanted in done.stdout


def _until(ready: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _SECONDS
    while not ready():
        if time.monotonic() > until:
            raise Missing(f"{what} did not come up within {_SECONDS:g} s")
        time.sleep(0.05)
