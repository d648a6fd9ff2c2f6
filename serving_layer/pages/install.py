"""Puts the pages onto the application."""

import time

from fastapi import FastAPI

from serving_layer.pages import (
    alert_rule,
    alerts,
    corrections,
    dead_letter,
    dead_letters,
    glance,
    layers,
    login,
    publications,
    recompute,
    rollback,
    stack,
    static_files,
    store,
    views,
)
from serving_layer.pages.cookie_key import CookieKey
from serving_layer.pages.sessions import Sessions

ROUTERS = (
    glance,
    store,
    alerts,
    alert_rule,
    layers,
    publications,
    rollback,
    corrections,
    views,
    recompute,
    dead_letters,
    dead_letter,
    stack,
    login,
    static_files,
)


def install(app: FastAPI) -> None:
    """Once, behind the routes of `/v1`. Who may see them, `app.state.gate` says."""
    app.state.sessions = Sessions(time.monotonic)
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_middleware(CookieKey, sessions=app.state.sessions)
