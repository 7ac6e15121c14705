#!/usr/bin/env bash
# Prometheus itself scrapes `precipice serve`, and what it stored is queried back.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
"$(dirname "$0")/../real/need.sh" prometheus prometheus || {
  echo "SKIP 21-serve-prometheus: prometheus cannot be installed (is the registry reachable?)"
  exit 77
}
work=$(mktemp -d)
server= scraper=
trap 'for p in $scraper $server; do kill "$p" 2>/dev/null || true; done; wait 2>/dev/null; rm -rf "$work"' EXIT
"$PRECIPICE" serve --port 0 --time-scale 20 --exit-after 120s >"$work/url" 2>"$work/log" &
server=$!
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
url=$(cat "$work/url")
curl -sS -m 20 "$url/v1/completions" -H 'content-type: application/json' -d '{"prompt":"able","max_tokens":25}' >/dev/null
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
cat >"$work/prometheus.yml" <<Y
global: {scrape_interval: 1s}
scrape_configs: [{job_name: precipice, static_configs: [{targets: ["${url#http://}"]}]}]
Y
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
  --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
scraper=$!
ask() { curl -sS -m 5 -G "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" 2>/dev/null; }
for _ in $(seq 60); do
  if ask 'vllm:generation_tokens_total' | grep -q '"25"'; then
    ask 'up{job="precipice"}' | grep -q '"1"'
    ask 'histogram_quantile(0.5, vllm:e2e_request_latency_seconds_bucket)' | grep -q '"value"'
    echo "ok 21-serve-prometheus"
    exit 0
  fi
  sleep 0.5
done
echo "FAIL 21-serve-prometheus: the counter never came"; tail -5 "$work/prometheus.log"; exit 1
