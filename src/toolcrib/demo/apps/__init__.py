"""Three apps to try, written as any developer would: reminders, music, photos."""

from toolcrib.demo.apps.serving import DEMO_USER, serve_demo_apps

__all__ = ["DEMO_USER", "serve_demo_apps"]
