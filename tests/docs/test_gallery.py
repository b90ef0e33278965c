"""The gallery: its commands exist, its pictures are real, and without a browser it says so."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from safe_stepwise.commands.main import CHECKOUT_COMMANDS, PACKAGE_COMMANDS
from tests.browsing import chromium
from tests.docs import gallery


def test_commands_write_where_the_pages_are_looked_for() -> None:
    for shown in gallery.PAGES:
        assert {command.split()[1] for command in shown.commands} <= {*CHECKOUT_COMMANDS, *PACKAGE_COMMANDS}
        folder = f"{gallery.FOLDER}/{shown.file.split('/')[0]}"
        assert any(folder in command for command in shown.commands), shown.name
        assert "simulated" in shown.text or "symbolic" not in " ".join(shown.commands)


def test_without_pictures_the_page_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gallery, "ROOT", tmp_path)
    assert "There are no pictures here" in gallery.markdown()
    assert [*gallery.files()] == []
    assert all(command in gallery.markdown() for shown in gallery.PAGES for command in shown.commands)


def test_pictures_are_taken_and_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gallery, "ROOT", tmp_path)
    shown = gallery.PAGES[0]
    shown.path.parent.mkdir(parents=True)
    shown.path.write_text("<h1>Labels</h1>")
    pictures = {suffix: shown.picture(suffix) for suffix in gallery.SIZES}
    with chromium() as browser:
        gallery.photograph(browser, shown.path, pictures)
    sizes = [struct.unpack(">II", picture.read_bytes()[16:24]) for picture in pictures.values()]
    assert sizes == [*gallery.SIZES.values()]
    addresses = [address for address, _ in gallery.files()]
    assert addresses == ["gallery/labels.png", "gallery/labels-phone.png", "gallery/labels.html"]
    assert all(address in gallery.markdown() for address in addresses)
    assert "There are no pictures" not in gallery.markdown()
