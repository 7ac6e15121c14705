#!/usr/bin/env bash
# The page in a real browser without a network: no request leaves it, no error of a script, every figure draws when a
# reader scrolls or jumps to it, in idle time and for print, and figures over time keep one axis. How fast it opens is
# printed; what bounds it (bytes, points, elements) is counted, since a busy machine proves nothing.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
cd "$(dirname "$0")/../.."
limit_bytes=2000000
browser=$(command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  .ci/real/need.sh chromium chromium || { echo "SKIP 30-page-offline: chromium cannot be installed (is the registry reachable?)"; exit 77; }
  browser=chromium
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fixture=fixtures/vllm-h200-0.26.0/kv6.41-seqs128
run=$fixture/overload-6144x2048-c64-a
"$PRECIPICE" import vllm-bench "$run/bench.json.gz" --metrics "$run/metrics.txt.gz" \
  --server-log "$fixture/server.log.gz" --iterations "$fixture/iterations.csv.gz" -o "$work/run" >/dev/null 2>&1
[ -s "$work/run/report.html" ] || "$PRECIPICE" report "$work/run" -o "$work/run/report.html" 2>/dev/null
"$PRECIPICE" simulate -c 8 -n 16 --input-tokens 512 --output-tokens 64 --no-report -o "$work/a" >/dev/null 2>&1
"$PRECIPICE" simulate -c 8 -n 16 --input-tokens 512 --output-tokens 64 --max-num-seqs 4 --no-report -o "$work/b" \
  >/dev/null 2>&1
"$PRECIPICE" report "$work/a" "$work/b" -o "$work/series.html" 2>/dev/null

# A probe (.ci/real/page-probe.js) goes into a copy: it scrolls, jumps, zooms, prints, and says what did not draw.
probe() {
  python3 - "$1" "$2" .ci/real/page-probe.js <<'PY'
import sys
page = open(sys.argv[1], encoding="utf-8").read()
first = """<script>window.seen = [];
addEventListener("error", (event) => seen.push(String(event.message || event.target.outerHTML)), true);
addEventListener("unhandledrejection", (event) => seen.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => seen.push("loads " + event.blockedURI));</script>"""
last = "<script>{" + open(sys.argv[3], encoding="utf-8").read() + "}</script>"
page = page.replace("<head>", "<head>" + first, 1)
end = page.rindex("</body>")
open(sys.argv[2], "w", encoding="utf-8").write(page[:end] + last + page[end:])
PY
}

checked=0
for page in "$work/run/report.html" "$work/series.html"; do
  size=$(stat -c %s "$page")
  [ "$size" -lt "$limit_bytes" ] || { echo "$page has $size bytes, more than $limit_bytes"; exit 1; }
  probe "$page" "$work/probe.html"
  # No name resolves: what the page asked for would fail, and the net log would name it.
  timeout 120 .ci/real/browse.py "$work/profile" "$work/net.json" "$work/probe.html" probe "$browser" >"$work/seen.json"
  python3 - "$work/seen.json" "$work/net.json" "$(basename "$page")" "$size" <<'PY'
import json, re, sys
seen, net, name, size = sys.argv[1:]
seen = json.load(open(seen, encoding="utf-8"))
assert not seen["faults"], f"{name}: " + "; ".join(seen["faults"])
assert seen["figures"] >= 3, f"{name}: {seen['figures']} figures"
# URLs of requests in the browser's own log; its updates and probes are its own, so only those of this page count.
asked = set(re.findall(r'"url":"((?:https?|wss?)://[^"]*)"', open(net, encoding="utf-8").read()))
own = {url for url in asked if not re.match(r"https?://([a-z0-9-]+\.)*(google|googleapis|gvt1|gstatic)\.com[/:]", url)}
assert not own, f"{name} asks for {own}"
print(f"{name}: {int(size):,} bytes, {seen['figures']} figures of {seen['points']:,} points, "
      f"{seen['elements']:,} elements, painted after {seen['painted'] or float('nan'):.0f} ms, loaded after {seen['ms']:.0f} ms, nothing loaded")
# On one core of 2020 some 50,000 points and as many elements take a second.
assert seen["points"] < 50_000 and seen["elements"] < 50_000, f"{name}: {seen['points']} points, {seen['elements']} elements"
PY
  checked=$((checked + 1))
done
echo "ok 30-page-offline: $checked pages"
