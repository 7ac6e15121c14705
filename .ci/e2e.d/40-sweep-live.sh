#!/usr/bin/env bash
# A sweep of a server that is restarted for each setting, killed in the middle and continued: a setting that the server
# refuses is named and left out, and the others come out as the engine says in virtual time.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
export PRECIPICE
scale=4
work=$(mktemp -d)
sweep=
stop() {
  if [ -n "$sweep" ]; then kill "$sweep" 2>/dev/null || true; fi
  if [ -f "$work/pid" ]; then kill "$(cat "$work/pid")" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap stop EXIT
cd "$work"
server=(--profile h200-qwen2.5-7b --num-gpu-blocks-override 2000 --max-model-len 4096)

# The old server ends, the new one starts in the background; fails when it does not come up.
cat >restart.sh <<'SH'
#!/usr/bin/env bash
port=$1; shift
if [ -f pid ]; then
  kill "$(cat pid)" 2>/dev/null
  while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.1; done
fi
"$PRECIPICE" serve --port "$port" --exit-after 300s "$@" >url 2>log &
echo $! >pid
for _ in $(seq 100); do
  if [ -s url ]; then exit 0; fi
  if ! kill -0 "$(cat pid)" 2>/dev/null; then cat log >&2; exit 1; fi
  sleep 0.1
done
exit 1
SH
chmod +x restart.sh

cat >settings.json <<'JSON'
[{"max-num-seqs": 2}, {"max-num-seqs": 16, "max-num-batched-tokens": 8}, {"max-num-seqs": 4}, {"max-num-seqs": 12}]
JSON
load=(-c 16 -n 32 --input-tokens 1000 --output-tokens 100)
./restart.sh 0 "${server[@]}"
url=$(cat url)
live=(sweep --url "$url" --list settings.json "${load[@]}" --sample-hz 10 -o out --json
  --restart-cmd "./restart.sh ${url##*:} ${server[*]} --time-scale $scale {flags}")
"$PRECIPICE" "${live[@]}" >killed.json 2>killed.log &
sweep=$!
for _ in $(seq 1000); do
  if [ -s out/results.jsonl ]; then break; fi
  sleep 0.05
done
kill -KILL "$sweep"
wait "$sweep" || true
sweep=
code=0
timeout 300 "$PRECIPICE" "${live[@]}" >table.json 2>sweep.log || code=$?
cat sweep.log
[ "$code" = 3 ] || { echo "exit code $code instead of 3"; exit 1; }
grep -q "1 of 4 runs are there already" sweep.log
grep -q "error: setting max-num-batched-tokens=8 max-num-seqs=16: --restart-cmd ended with exit status: 1" sweep.log

cat >alike.json <<'JSON'
[{"max-num-seqs": 2}, {"max-num-seqs": 4}, {"max-num-seqs": 12}]
JSON
"$PRECIPICE" sweep --list alike.json "${load[@]}" "${server[@]}" -o simulated --json -q >simulated.json
python3 - "$scale" <<'PY'
import json, sys
scale = float(sys.argv[1])
live, simulated = json.load(open("table.json")), json.load(open("simulated.json"))
assert live["source"] == "live" and live["missing"] == 1, live
assert len(live["rows"]) == len(simulated["rows"]) == 3
for ours, theirs in zip(live["rows"], simulated["rows"]):
    assert ours["point"] == theirs["point"] and ours["figures"]["completed"]["value"] == 32, ours
    figure = lambda row, name: row["figures"][name]["value"]
    rate, expected = figure(ours, "output_throughput") / scale, figure(theirs, "output_throughput")
    print(f"   {ours['point']}: {rate:.1f} tok/s live, {expected:.1f} simulated ({rate / expected - 1:+.1%})")
    assert abs(rate / expected - 1) < 0.1
    assert figure(ours, "running_peak") <= int(ours["point"]["max-num-seqs"])
PY
echo "ok 40-sweep-live"
