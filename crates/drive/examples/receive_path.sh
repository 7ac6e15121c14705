#!/bin/sh
# The receive path against a server whose truth is known: the paced server on core 1, the client on core 0.
#   sh crates/drive/examples/receive_path.sh [STREAMS ...]
# With BIN=DIRECTORY the programs are taken from there; else they are built.
# Ends by itself. With other work on the machine the figures mean little; those of one run compare with each other.
set -eu
cd "$(dirname "$0")/../../.."
bin=${BIN:-}
if [ -z "$bin" ]; then
    cargo build -q --release -p precipice-drive --examples
    bin="${CARGO_TARGET_DIR:-target}/release/examples"
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tokens=128

# serve ARGUMENTS...: a paced server; its address is in $address. The server ends when descriptor 9 is closed.
serve() {
    mkfifo "$tmp/in"
    : > "$tmp/out"
    taskset -c 1 "$bin/paced_server" --tokens "$tokens" "$@" < "$tmp/in" > "$tmp/out" &
    exec 9> "$tmp/in"
    until grep -q listening "$tmp/out"; do sleep 0.05; done
    address=$(sed -n 's/^listening //p' "$tmp/out")
}
rest() {
    exec 9>&-
    wait
    sed -n 2p "$tmp/out"
    rm "$tmp/in"
}

for streams in ${*:-32 1024}; do
    rounds=$((16384 / streams)); [ "$rounds" -gt 8 ] && rounds=8; [ "$rounds" -lt 2 ] && rounds=2
    echo "== $streams streams, $tokens tokens, $rounds rounds; truth TTFT 200, ITL 20 ms"
    serve
    taskset -c 0 "$bin/bare_reader" --address "$address" --streams "$streams" --rounds "$rounds"
    taskset -c 0 "$bin/receive_path" --address "$address" --streams "$streams" --rounds "$rounds" --tokens "$tokens"
    rest
done
echo "== a stall of 2000 ms before one token in 7000 (8 streams)"
serve --stall-at 3500 --stall-ms 2000
taskset -c 0 "$bin/receive_path" --address "$address" --streams 8 --requests 55 --tokens "$tokens"
rest
echo "== open loop, 50/s Poisson"
serve
taskset -c 0 "$bin/receive_path" --address "$address" --rate 50 --requests 500 --tokens "$tokens"
rest
