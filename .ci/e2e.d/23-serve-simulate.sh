#!/usr/bin/env bash
# The report's overload, once in virtual time and once through sockets: the same assertions on both.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
scale=10
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }; rm -rf "$work"' EXIT
"$PRECIPICE" simulate --quiet --no-report --json -o "$work/simulated" >"$work/simulated.json"
"$PRECIPICE" serve --port 0 --time-scale "$scale" --exit-after 300s >"$work/url" 2>"$work/log" &
server=$!
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
timeout 200 "$PRECIPICE" run --url "$(cat "$work/url")" --input-tokens 6144 --output-tokens 2048 --concurrency 64 \
  --requests 128 --sample-hz 5 --quiet --no-report --json -o "$work/served" >"$work/served.json"
python3 - "$work" "$scale" <<'PY'
import json, sys
work, scale = sys.argv[1], float(sys.argv[2])
runs = {name: (json.load(open(f"{work}/{name}.json")), factor) for name, factor in [("simulated", 1), ("served", scale)]}
seen = {}
for name, (findings, factor) in runs.items():
    client, server = findings["client"], findings["server"]
    requests, tokens, preemptions = client["requests"], client["tokens"], server["preemptions"]["count"]
    throughput, running = client["output_throughput"] / factor, server["running"]["mean"]
    print(f"   {name}: {preemptions} preemptions, {throughput:.1f} tok/s, {running:.2f} run, peak {server['running']['peak']}")
    assert (requests["completed"], requests["failed"]) == (128, 0), requests
    assert (tokens["prompt"], tokens["output"]) == (128 * 6144, 128 * 2048), tokens
    assert server["running"]["peak"] == 19 and server["waiting"]["peak"] >= 45, server
    assert findings["capacity"]["kv_cache_tokens"] == 120_064, findings["capacity"]
    seen[name] = (preemptions, throughput)
(preempted, throughput), (preempted_live, throughput_live) = seen["simulated"], seen["served"]
assert preempted == preempted_live == 36, seen
assert abs(throughput_live / throughput - 1) < 0.02, seen
PY
echo "ok 23-serve-simulate"
