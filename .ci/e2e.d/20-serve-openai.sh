#!/usr/bin/env bash
# An OpenAI client, unchanged, against `precipice serve`.
set -euo pipefail
: "${PRECIPICE:?path of the binary}"
cache=${PRECIPICE_CACHE:-$HOME/.cache/precipice}
venv=$cache/openai-client
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import openai' 2>/dev/null; then
  python3 -m venv "$venv" && timeout 300 "$venv/bin/pip" install -q openai || {
    echo "SKIP 20-serve-openai: the package openai cannot be installed (is the registry reachable?)"
    exit 77
  }
fi
"$PRECIPICE" serve --port 0 --time-scale 20 --exit-after 120s >"$work/url" 2>"$work/log" &
server=$!
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
URL=$(cat "$work/url") timeout 60 "$venv/bin/python" - <<'PY'
import os, openai
client = openai.OpenAI(base_url=os.environ["URL"] + "/v1", api_key="none")
model = client.models.list().data[0].id
whole = client.completions.create(model=model, prompt="able about above", max_tokens=12)
assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (3, 12), whole.usage
chunks = list(client.chat.completions.create(model=model, max_tokens=9, stream=True,
    messages=[{"role": "user", "content": "able"}], stream_options={"include_usage": True}))
assert sum(1 for c in chunks if c.choices and c.choices[0].delta.content) == 9
assert chunks[-1].usage.completion_tokens == 9
for call, error in [(dict(model="nope", prompt="a"), openai.NotFoundError),
                    (dict(model=model, prompt="a", max_tokens=10**6), openai.BadRequestError)]:
    try:
        client.completions.create(**call)
        raise SystemExit(f"{call} was not refused")
    except error:
        pass
print("ok 20-serve-openai")
PY
