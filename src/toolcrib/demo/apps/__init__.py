"""Three demo apps that use the public app SDK: reminders, music and photos."""

from toolcrib.demo.apps.serving import DEMO_USER, serve_demo_apps

__all__ = ["DEMO_USER", "serve_demo_apps"]
