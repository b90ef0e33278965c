from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from releases.publish import secrets
from releases.publish.folder import LocalFile
from releases.publish.secrets import secret_in
from safe_stepwise.errors import UserError
from tests import sizes

OWN = {"OPENAI_API_KEY": "no-pattern/of+any,kind"}
SECRETS = {
    "hf_" + "aB3" * 12: "a Hugging Face token",
    "hf_oauth_" + "aB3-" * 8: "a Hugging Face token",
    "hf_jwt_" + "aB3." * 8: "a Hugging Face token",
    "sk-" + "aB3" * 16: "an OpenAI or Anthropic key",
    "sk-ant-" + "aB3-" * 10: "an OpenAI or Anthropic key",
    "AKIA" + "ABCD1234" * 2: "an AWS key",
    "ghp_" + "aB3" * 12: "a GitHub token",
    "glpat-" + "aB3x" * 5: "a GitLab token",
    "AIza" + "aB3-x" * 7: "a Google key",
    "-----BEGIN RSA " + "PRIVATE KEY-----": "a private key",
    "rk_live_" + "aB3x" * 6: "a Stripe key",
    "r8_" + "aB3" * 12 + "x": "a Replicate token",
    "tgp_v1_" + "aB3-" * 10: "a Together key",
    "wandb_v1_" + "aB3x" * 10: "a Weights & Biases key",
    "xapp-1-" + "A1b2C3" * 5: "a Slack token",
    "eyJ" + "aB3x" * 4 + ".eyJ" + "aB3x" * 6 + "." + "aB3-" * 6: "a JSON web token",
    "postgresql://me" + ":correct-horse@db.example/x": "a database's password",
    "mongodb+srv://me" + ":correct-horse@db.example/x": "a database's password",
    "machine api.example login me " + "password correct-horse": "a password of netrc",
    **dict.fromkeys(
        (
            "MISTRAL_API_" + "KEY=" + "aB3xY9zQ" * 4,
            "api_" + "key: " + "aB3xY9zQ" * 4,
            "X-Api-" + "Key=" + "7c" * 16,
            "WANDB_API_" + "KEY=" + "0f" * 20,
            "Authori" + "zation: Bearer " + "aB3xY9zQ" * 4,
            "to" + "ken: " + "0f" * 20,
        ),
        secrets.KEY_BY_NAME,
    ),
    "sk-" + "0f" * 16: "an OpenAI or Anthropic key",
    OWN["OPENAI_API_KEY"]: "the value of OPENAI_API_KEY",
}
HARMLESS = (
    "task-oriented-dialogue-systems-of-the-nineties, risk-averse, "
    f"sha256 {'0f' * 32}, {'A1' * 40}, hf_hub_download(), HF_TOKEN, sk-learn, "
    "hf_oauth_expiration_minutes: 480, -----BEGIN PUBLIC KEY-----, postgres://USER:$PASSWORD@HOST, "
    "postgresql://localhost:5432/db, a machine that says login and password, r8_small, eyJ.eyJ.x, "
    "help-desk-admin-jobs-in-new-york-city, Each voting machine requires login then password entry, "
    f'task-{"0f" * 16}, disk-{"0F" * 20}-a, risk-{"0f" * 32}, "commit": "{"0f" * 20}", '
    f'sha256="{"0f" * 32}", git+https://h/r@{"0f" * 20}, "etag": "{"0f" * 16}", {"0f" * 20}  token, '
    f"max_new_tokens: 32, token_ids {'0f' * 20}, tokenizer: {'0f' * 20}, secret: {'0f' * 32}, token: {'a' * 32}, "
    "mask-or-face-covering-required-in-all-shops, hf_oauth_login_button_component()"
)


def parquet(text: str, arrow: Any = None, **options: Any) -> bytes:
    rows = [{"p": [{"t": [HARMLESS, "x"]}]}, {"p": [{"t": ["y", f"{HARMLESS} {text}"]}]}]
    sink = io.BytesIO()
    pq.write_table(arrow or pa.Table.from_pylist(rows * 2000), sink, compression="zstd", **options)
    return sink.getvalue()


def table(text: str) -> Any:
    """A dictionary, at the top and within lists."""
    top = pa.array([HARMLESS, text] * 40).dictionary_encode()
    inner = pa.ListArray.from_arrays(pa.array(range(0, 81, 2), pa.int32()), top)
    return pa.table({"a": top.take(pa.array([0] * 40)), "b": inner})


def arrow(text: str) -> bytes:
    sink, rows = io.BytesIO(), table(text)
    how = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, rows.schema, options=how) as w:
        w.write_table(rows)
    return sink.getvalue()


def feathered(text: str) -> bytes:
    sink = io.BytesIO()
    feather.write_feather(table(text), sink, compression="zstd")
    return sink.getvalue()


def described(text: str) -> bytes:
    rows = pa.table({"a": ["x"]}).replace_schema_metadata({"note": text})
    return parquet("", rows)


def zipped(text: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", text)
    return sink.getvalue()


def tarred(text: str) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))
    return sink.getvalue()


def safetensors(text: str) -> bytes:
    header = json.dumps({"__metadata__": {"note": text}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


def npz(text: str) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, a=np.array([text]))
    return sink.getvalue()


def in_base64(text: str, line: int = 0) -> str:
    encoded = base64.b64encode(f"user:{text}\n".encode()).decode()
    lines = [encoded[i : i + line] for i in range(0, len(encoded), line)] if line else [encoded]
    return "data: /x" + "\n".join(lines)


def packed(text: str, codec: str) -> bytes:
    return bytes(pa.compress(text.encode(), codec, asbytes=True))


PLACES: dict[str, Callable[[str], bytes]] = {
    "text": lambda s: f"{HARMLESS}\nkey={s}\n".encode(),
    "UTF-16": lambda s: f"key={s}\n".encode("utf-16"),
    "UTF-16 without a mark": lambda s: f"key={s}\n".encode("utf-16-be"),
    "UTF-32": lambda s: f"key={s}\n".encode("utf-32-le"),
    "escapes of JSON": lambda s: "".join(f"\\u{ord(c):04x}" for c in s).encode(),
    "one escape of JSON": lambda s: json.dumps({"a": f"\\u{ord(s[0]):04X}{s[1:]}"}).encode(),
    "escapes of Python": lambda s: "".join(f"\\x{ord(c):02x}" for c in s).encode(),
    "a URL": lambda s: "".join(f"%{ord(c):02X}" for c in s).encode(),
    "base64": lambda s: in_base64(s).encode(),
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(f"??>{s}".encode()),
    "base64 in lines": lambda s: in_base64(s, 30).encode(),
    "base64 in JSON": lambda s: json.dumps(in_base64(s, 30)).encode(),
    "base64 in indented lines": lambda s: in_base64(s, 30).replace("\n", "\n    ").encode(),
    "base64 in Markdown's quotes": lambda s: in_base64(s, 30).replace("\n", "\n> ").encode(),
    "base64 in a list of JSON": lambda s: json.dumps(in_base64(s, 30).split("\n")).encode(),
    "base64 in a list of JSON, in lines": lambda s: json.dumps(in_base64(s, 30).split("\n"), indent=4).encode(),
    "base64 in a notebook": lambda s: json.dumps(in_base64(s, 30).splitlines(keepends=True), indent=1).encode(),
    "base64 in a list of YAML": lambda s: in_base64(s, 30).replace("\n", "\n  - ").encode(),
    "base64 in a quoted list of YAML": lambda s: in_base64(s, 30).replace("\n", '"\n  - "').encode(),
    "base64 in added lines": lambda s: in_base64(s, 30).replace("\n", '" +\n    "').encode(),
    "base64 in lines that go on": lambda s: in_base64(s, 30).replace("\n", '" \\\n    "').encode(),
    "base64 in lines of Python": lambda s: in_base64(s, 30).replace("\n", '"\n    "').encode(),
    "an escape of YAML": lambda s: f"a: \\U{ord(s[0]):08x}{s[1:]}".encode(),
    "an escape of Markdown": lambda s: s.replace("_", "\\_").encode(),
    "base64 of base64": lambda s: in_base64(in_base64(s)).encode(),
    "base64 in UTF-16": lambda s: in_base64(s).encode("utf-16"),
    "gzip": lambda s: gzip.compress(s.encode()),
    "Parquet": parquet,
    "a dictionary of Parquet": lambda s: parquet("", table(s)),
    "metadata of Parquet": described,
    "safetensors": safetensors,
}


@pytest.mark.parametrize("place", PLACES)
def test_secrets_are_found_wherever_they_stand(place: str, tmp_path: Path) -> None:
    for secret, name in SECRETS.items():
        content = PLACES[place](secret)
        held = LocalFile("a.bin", content, len(content))
        assert (place, secret_in(held, OWN)) == (place, name)
        # By its content alone, whatever it is called.
        file = tmp_path / "a.pq"
        file.write_bytes(content)
        assert secret_in(LocalFile("a.pq", file, len(content)), OWN) == name
    content = PLACES[place](HARMLESS)
    assert secret_in(LocalFile("a.bin", content, len(content)), OWN) is None


@pytest.mark.parametrize("secret", SECRETS)
def test_a_path_is_read_too(secret: str) -> None:
    assert secret_in(LocalFile(f"{secret}/a.txt", b"", 0), OWN) == SECRETS[secret]


@given(before=st.text(max_size=40), value=st.text(min_size=8, max_size=40))
@settings(max_examples=sizes.examples(50), deadline=None)
def test_a_credential_of_any_letters_is_found(before: str, value: str) -> None:
    for content in (f"{before}{value}".encode("utf-8", "surrogatepass"), value.encode("utf-16-le")):
        assert secret_in(LocalFile("a", content, len(content)), {"KEY": value}) is not None
    escaped = json.dumps({"a": before + value}).encode()
    assert secret_in(LocalFile("a", escaped, len(escaped)), {"KEY": value}) is not None


def test_a_secret_between_two_blocks_is_found(tmp_path: Path) -> None:
    file = tmp_path / "large"
    for secret, name in SECRETS.items():
        file.write_bytes(b"\1" * (secrets.BLOCK - 10) + secret.encode("utf-16-le") + b"\1" * 1000)
        assert secret_in(LocalFile("large", file, file.stat().st_size), OWN) == name


def test_a_bomb_is_refused_and_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "MAX_UNPACKED_BYTES", 50 << 20)
    content = gzip.compress(bytes(60 << 20))
    tracemalloc.start()
    with pytest.raises(UserError, match="unpacks to more than 52,428,800 bytes") as caught:
        secret_in(LocalFile("a.gz", content, len(content)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 48 << 20
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PAR1", "Parquet"),
        (b"PAR1" + bytes(100), "Parquet"),
        (parquet("")[:-3], "Parquet"),
        (gzip.compress(b"x" * 9999, mtime=0)[:-9], "gzip"),
        (gzip.compress(gzip.compress(b"text", mtime=0), mtime=0), "gzip"),
        (zipped("text"), "zip"),
        (b"#!/bin/sh\n" + zipped("text"), "zip"),
        (npz("text"), "zip"),
        (tarred("text"), "tar"),
        (bz2.compress(b"text"), "bzip2"),
        (lzma.compress(b"text"), "xz"),
        (packed("text", "zstd"), "zstd"),
        (packed("text", "lz4"), "lz4"),
        (arrow(""), "Arrow"),
        (feathered(""), "Arrow"),
        (b"7z\xbc\xaf'\x1c" + bytes(40), "7z"),
    ],
    # A zip has the time in it: pytest-xdist refuses ids that differ from one process to the other.
    ids=lambda value: value if isinstance(value, str) else "packed",
)
def test_what_is_not_looked_into_is_refused(content: bytes, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "broken"
    file.write_bytes(content)
    with pytest.raises(UserError, match=f"broken: can't be read as {kind}") as caught:
        secret_in(LocalFile("broken", file, len(content)))
    assert len(str(caught.value).splitlines()) == 1


@given(st.binary(max_size=300))
@settings(max_examples=sizes.examples(200), deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for magic in (b"", *(m if isinstance(m, bytes) else m[0] for m, _, _ in secrets._KINDS)):
        with suppress(UserError):  # and no other
            assert secret_in(LocalFile("a", magic + content, 0)) is None


def test_digests_images_and_prose_are_no_secrets(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(1 << 20)
    image = f'<img src="data:image/png;base64,{base64.b64encode(noise).decode()}">'
    for content in (HARMLESS.encode(), image.encode(), noise, b"\xff\xff\xff\xff" + noise):
        assert secret_in(LocalFile("a.md", content, len(content)), OWN) is None
    empty = tmp_path / "empty"
    empty.touch()
    assert secret_in(LocalFile("empty", empty, 0), OWN) is None


def test_the_work_grows_with_the_file_alone() -> None:
    """Bytes of views for what would be slow to a pattern that goes back."""
    for unit in (b"\\", b"a", b"=", b"\n", b"%", b"\\u00", b"\0", b"x\n", b"QUJD"):
        one, two = (sum(map(len, secrets.views(io.BytesIO(unit * number), "a"))) for number in (1 << 16, 1 << 17))
        assert two < 2.2 * one, unit


def cells(texts: list[str], kind: str) -> bytes:
    """Texts one behind the other in a column, 5,000 harmless rows before them."""
    values = [*map(str, range(5000)), *texts]
    column = {
        "flat": lambda: pa.array(values),
        "nested": lambda: pa.array([[{"t": value}] for value in values]),
        "dictionary": lambda: pa.array(values).dictionary_encode(),
    }[kind]()
    return parquet("", pa.table({"a": column}))


@pytest.mark.parametrize("kind", ["flat", "nested", "dictionary"])
@pytest.mark.parametrize("size", [32, 40])
@pytest.mark.parametrize("after", ["hello", "9", "_x", "-y"])
def test_a_key_by_its_word_ends_where_its_cell_ends(kind: str, size: int, after: str) -> None:
    """Arrow has the texts of a column end to end."""
    key = ("aB3x" * 10)[:size]
    lines = {f"MISTRAL_API_KEY={key}": secrets.KEY_BY_NAME, f"commit={key}": None, f"token: {key}{after}": None}
    for line, name in lines.items():
        content = cells([line, after], kind)
        assert secret_in(LocalFile("a.parquet", content, len(content))) == name
