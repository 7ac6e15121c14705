#!/usr/bin/env bash
# `calibrate --url` against a server whose step times are known, slowed down so that the machine's own delays stay small: loads
# that it never measured are predicted within 3 %.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
slower=4
"$PRECIPICE" serve --profile h200-qwen2.5-7b --num-gpu-blocks-override 7504 --max-num-seqs 64 --port 0 \
  --time-scale "$(python3 -c "print(1 / $slower)")" --exit-after 600s >"$work/url" 2>"$work/log" &
server=$!
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
"$PRECIPICE" calibrate --url "$(cat "$work/url")" --model-config Qwen2.5-7B --gpu H200 --max-num-batched-tokens 2048 \
  --max-num-seqs 64 --longest-prompt 6144 --budget 1m -q -o "$work/live.toml"
cd "$work"
for load in "64 128 6144 2048" "24 48 3000 500" "48 96 700 300" "2 4 5000 400"; do
  read -r clients requests input output <<<"$load"
  for profile in live.toml h200-qwen2.5-7b; do
    "$PRECIPICE" simulate --profile "$profile" --num-gpu-blocks-override 7504 --max-num-seqs 64 -c "$clients" -n "$requests" \
      --input-tokens "$input" --output-tokens "$output" --json --no-report -q -o "$work/$profile-$clients" >"$work/$profile.json"
  done
  LOAD=$load SLOWER=$slower python3 - <<'PY'
import json, os
rate = lambda name: json.load(open(name + ".json"))["client"]["output_throughput"]
ours, theirs = rate("live.toml"), rate("h200-qwen2.5-7b") / float(os.environ["SLOWER"])
off = ours / theirs - 1
print(f"{os.environ['LOAD']}: {ours:.1f} predicted, {theirs:.1f} tok/s, {off:+.2%}")
assert abs(off) < 0.03, off
PY
done
echo "ok 25-calibrate-serve"
