#!/usr/bin/env bash
# Makes profiles/h200-qwen2.5-7b.toml again, from the recorded runs in fixtures/.
#   PRECIPICE  the binary; without it one is built
set -euo pipefail
cd "$(dirname "$0")/.."
precipice=${PRECIPICE:-}
if [ -z "$precipice" ]; then
  cargo build --quiet -p precipice
  precipice=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/precipice
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=fixtures/vllm-h200-0.26.0
runs=()
for run in kv6.41-seqs128/overload-6144x2048-c64-a kv6.41-seqs128/conc-1024x256-c16 kv6.41-seqs128/conc-1024x256-c64 \
  kv6.41-seqs128/len-2048x256-c16 kv6.41-seqs128/len-6144x256-c16 kv4-seqs128/overload-6144x2048-c64; do
  out=$work/${run/\//-}
  "$precipice" import vllm-bench "$root/$run/bench.json.gz" --metrics "$root/$run/metrics.txt.gz" \
    --metrics "$root/$run/metrics_full_start.prom.gz" --server-log "$root/${run%%/*}/server.log.gz" \
    --iterations "$root/${run%%/*}/iterations.csv.gz" -o "$out" 2>/dev/null
  runs+=("$out")
done
"$precipice" calibrate "${runs[@]}" --gpu H200 --model-config Qwen2.5-7B --name h200-qwen2.5-7b \
  -o profiles/h200-qwen2.5-7b.toml
