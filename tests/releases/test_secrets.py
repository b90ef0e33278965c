from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from releases.folder import LocalFile
from releases.secrets import secret_in
from safe_stepwise.errors import UserError

SECRETS = {
    "hf_" + "aB3" * 12: "a Hugging Face token",
    "sk-" + "aB3" * 16: "an OpenAI or Anthropic key",
    "sk-ant-" + "aB3-" * 10: "an OpenAI or Anthropic key",
    "AKIA" + "ABCD1234" * 2: "an AWS key",
    "ghp_" + "aB3" * 12: "a GitHub token",
    "AIza" + "aB3-x" * 7: "a Google key",
    "-----BEGIN RSA " + "PRIVATE KEY-----": "a private key",
}
HARMLESS = (
    "task-oriented-dialogue-systems-of-the-nineties, risk-averse, "
    f"sha256 {'0f' * 32}, {'A1' * 40}, hf_hub_download(), HF_TOKEN, sk-learn, "
    "-----BEGIN PUBLIC KEY-----"
)


@pytest.mark.parametrize(("secret", "name"), SECRETS.items())
def test_secrets_are_found_in_text_and_in_nested_columns(
    secret: str, name: str, tmp_path: Path
) -> None:
    text = f"{HARMLESS}\nkey={secret}\n".encode()
    assert secret_in(LocalFile("a.md", text, len(text))) == name
    rows = [{"p": [{"t": [HARMLESS, "x"]}]}, {"p": [{"t": ["y", f"{HARMLESS} {secret}"]}]}]
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows * 2000), file, compression="zstd")
    assert secret_in(LocalFile("rows.parquet", file, file.stat().st_size)) == name


def test_digests_and_prose_are_no_secrets(tmp_path: Path) -> None:
    text = HARMLESS.encode()
    assert secret_in(LocalFile("a.md", text, len(text))) is None
    assert secret_in(LocalFile("a.md", text, len(text)), own="risk-averse") == "your own token"
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="can't be read as Parquet"):
        secret_in(LocalFile("broken.parquet", broken, 4))
    empty = tmp_path / "empty"
    empty.touch()
    assert secret_in(LocalFile("empty", empty, 0)) is None
