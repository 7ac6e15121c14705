#!/usr/bin/env bash
# The page in a real browser without a network: no request leaves it, no error of a script, every figure draws. How
# fast it opens is printed; what bounds it (bytes, points, elements) is counted, since a busy machine proves nothing.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
cd "$(dirname "$0")/../.."
limit_bytes=6000000
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

# A probe goes into a copy: it counts what the page loads, catches errors, draws every figure, and writes what it saw
# into the page, which the browser prints.
probe() {
  python3 - "$1" "$2" <<'PY'
import sys
page = open(sys.argv[1], encoding="utf-8").read()
first = """<script>window.seen = [];
addEventListener("error", (event) => seen.push(String(event.message || event.target.outerHTML)), true);
addEventListener("unhandledrejection", (event) => seen.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => seen.push("loads " + event.blockedURI));</script>"""
last = """<script>addEventListener("load", async () => {
  const ms = performance.now();
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  dispatchEvent(new Event("beforeprint"));
  const say = () => {
    const drawn = [...document.querySelectorAll("main:not([hidden]) .plot")];
    const empty = drawn.filter((place) => !place.querySelector("svg.main-svg")).map((place) => place.dataset.figure);
    const told = (figure) => figure.querySelector("details.data") || figure.parentElement.querySelector(".scroll table");
    const untold = [...document.querySelectorAll("main:not([hidden]) figure")].filter((figure) => !told(figure)).map((figure) => figure.id);
    const loaded = performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => !name.startsWith("data:"));
    const data = Object.values(JSON.parse(document.getElementById("figures").textContent)).flatMap((figure) => figure.data);
    const points = data.reduce((sum, trace) => sum + trace.x.length, 0);
    const elements = document.querySelectorAll("*").length;
    const report = { ms, painted: paint ? paint.startTime : null, figures: drawn.length, empty, untold, points, elements, loaded, errors: seen };
    const place = document.createElement("pre");
    place.id = "probe";
    place.textContent = "PROBE" + JSON.stringify(report) + "EBORP";
    document.body.append(place);
  };
  requestAnimationFrame(() => setTimeout(say, 0));
});</script>"""
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
  # No name resolves and no proxy answers: what the page asked for would fail, and the net log would name it.
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync \
    --no-first-run --user-data-dir="$work/profile" --host-resolver-rules="MAP * ~NOTFOUND" \
    --log-net-log="$work/net.json" --virtual-time-budget=20000 --dump-dom "file://$work/probe.html" \
    >"$work/dom.html" 2>/dev/null
  python3 - "$work/dom.html" "$work/net.json" "$(basename "$page")" "$size" <<'PY'
import json, re, sys
dom, net, name, size = sys.argv[1:]
text = open(dom, encoding="utf-8").read()
found = re.findall(r"PROBE(\{.*?\})EBORP</pre>", text, re.S)
assert found, f"{name}: the page did not come to its end in the browser"
import html
seen = json.loads(html.unescape(found[-1]))
assert not seen["errors"], f"{name}: {seen['errors']}"
assert not seen["loaded"], f"{name} loads {seen['loaded']}"
assert not seen["untold"], f"{name}: figures without a table: {seen['untold']}"
assert seen["figures"] >= 3 and not seen["empty"], f"{name}: {seen['figures']} figures, not drawn: {seen['empty']}"
# URLs of requests in the browser's own log; its updates and probes are its own, so only those of this page count.
asked = set(re.findall(r'"url":"((?:https?|wss?)://[^"]*)"', open(net, encoding="utf-8").read()))
own = {url for url in asked if not re.match(r"https?://([a-z0-9-]+\.)*(google|googleapis|gvt1|gstatic)\.com[/:]", url)}
assert not own, f"{name} asks for {own}"
print(f"{name}: {int(size):,} bytes, {seen['figures']} figures of {seen['points']:,} points, "
      f"{seen['elements']:,} elements, painted after {seen['painted'] or float('nan'):.0f} ms, scripts run after {seen['ms']:.0f} ms, nothing loaded")
# On one core of 2020 some 50,000 points and as many elements take a second.
assert seen["points"] < 50_000 and seen["elements"] < 50_000, f"{name}: {seen['points']} points, {seen['elements']} elements"
PY
  checked=$((checked + 1))
done
echo "ok 30-page-offline: $checked pages"
