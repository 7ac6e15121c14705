#!/usr/bin/env bash
# `precipice guard` in front of `precipice serve`: three times what it carries, by clients that try again. No preemption, every
# first token within the budget, and those who come when they are told are let in.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
work=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
listening() { for _ in $(seq 100); do [ -s "$1" ] && return 0; sleep 0.1; done; echo "FAIL: nothing listens"; exit 1; }

scale=10
"$PRECIPICE" serve --port 0 --time-scale "$scale" --exit-after 300s >"$work/server" 2>"$work/server.log" &
pids="$pids $!"
listening "$work/server"
# The server is ten times as fast as the one that it stands for, so the budget is a tenth.
"$PRECIPICE" guard --url "$(cat "$work/server")" --listen 127.0.0.1:0 --ttft-budget 1s --exit-after 300s \
  >"$work/guard" 2>"$work/guard.log" &
guard=$!
pids="$pids $guard"
listening "$work/guard"
url=$(cat "$work/guard")
timeout 200 "$PRECIPICE" run --url "$url" --input-tokens 6144 --output-tokens 2048 --rate 7.8 --requests 160 \
  --client-retries openai --sample-hz 5 --quiet --no-report --json -o "$work/run" >"$work/findings.json"
curl -sf -m 5 "$url/guard" >"$work/state.json"
curl -sf -m 5 "$url/metrics" >"$work/page"
grep -q '^vllm:kv_cache_usage_perc' "$work/page"
grep -q '^precipice_guard_lease_leaks 0.0$' "$work/page"
python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
findings, state = json.load(open(f"{work}/findings.json")), json.load(open(f"{work}/state.json"))
figures, replica = state["figures"], state["replicas"][0]
refused = sum(entry["count"] for entry in state["refused"])
ttft = findings["client"]["ttft_ms"]
print(f"   {sum(figures['admitted'].values())} admitted, {refused} refused, preemptions {replica['now']['preemptions']}, "
      f"TTFT max {ttft['max']:.0f} ms, returned {figures['returned']}, of these admitted {figures['returned_admitted']}, "
      f"{findings['client']['output_throughput']:.0f} tok/s")
assert replica["capacity"]["usable_blocks"] == 7503, replica
assert replica["now"]["preemptions"] <= 2, replica
assert refused > 100, state["refused"]
assert figures["returned_admitted"] >= 0.8 * figures["returned"], figures
assert ttft["p99"] <= 1000, ttft
assert (state["in_flight"], state["lease_leaks"], state["ledger_empty"]) == (0, 0, True), state
PY
kill -TERM "$guard"
wait "$guard"
grep -q '"drained":true,"event":"stopped"' "$work/guard.log"
echo "ok 60-guard-serve"
