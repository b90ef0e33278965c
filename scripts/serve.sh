#!/usr/bin/env bash
# Serve a model for --teacher openai:MODEL@http://localhost:8000/v1
# What stands after MODEL goes to vLLM as it is.
#
#   scripts/serve.sh openai/gpt-oss-120b --data-parallel-size 8             # one replica a GPU (80 GB)
#   scripts/serve.sh openai/gpt-oss-120b --tensor-parallel-size 2 --data-parallel-size 4
#   scripts/serve.sh Qwen/Qwen3-8B --lora-modules NAME@v1.0.0=PATH_OR_HUB_ID  # asked for as openai:NAME@v1.0.0@...
#   scripts/serve.sh ./a-tiny-model                                         # no GPU: `make test-vllm` first
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = "--help" ]; then sed -n '2,9s/^# \{0,1\}//p' "$0"; exit $((2 * ($# == 0))); fi
model=$1; shift
# Without the last two vLLM keeps cached tokens to itself, and a model's own settings change "greedy".
flags=(--port "${PORT:-8000}" --enable-prefix-caching --enable-prompt-tokens-details --generation-config vllm)
case " $* " in *" --lora-modules "*) flags+=(--enable-lora --max-lora-rank 64) ;; esac
if nvidia-smi -L >/dev/null 2>&1; then
    exec vllm serve "$model" "${flags[@]}" "$@"
fi
# On a CPU: unset, vLLM takes 16 GiB for its cache and one core; its blocks are 128 tokens long.
python=$(cd "$(dirname "$0")/.." && pwd)/.venv-vllm/bin/python
[ -x "$python" ] || { echo "error: no GPU here, and no vLLM for the CPU; install it with: make test-vllm" >&2; exit 2; }
export VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1}
export VLLM_CPU_OMP_THREADS_BIND=${VLLM_CPU_OMP_THREADS_BIND:-0-$(($(nproc) - 1))}
exec "$python" -m vllm.entrypoints.openai.api_server --model "$model" --enforce-eager --block-size 32 \
    "${flags[@]}" "$@"
