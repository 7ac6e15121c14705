"""Checks a run of `precipice run --json` against a real vLLM's own counters and vLLM's own client.

usage: compare-with-vllm-bench.py counters FINDINGS BEFORE AFTER
       compare-with-vllm-bench.py latencies FINDINGS FINDINGS BENCH BENCH
BEFORE and AFTER are bodies of /metrics; the warm-up lies between them. FINDINGS and BENCH are of the same load on the
same server, two runs each, by turns.
"""
import json
import re
import sys

REQUESTS, WARMUP, PROMPT, OUTPUT = 24, 2, 512, 128
# Before a run one tiny request asks whether the server takes token ids.
PROBE_PROMPT, PROBE_OUTPUT = 2, 8
# Recorded repeats of one load on a shared machine of two cores differ by 8 to 20 % either way; with two runs a client, the spread
# that was seen is a poor estimate, so no band is narrower than this.
NARROWEST = 0.35


def counter(path, name):
    values = re.findall(rf"^vllm:{name}(?:\{{[^}}]*\}})? (\S+)$", open(path).read(), re.M)
    assert values, f"{path} has no counter vllm:{name}"
    return sum(map(float, values))


def check(what, ours, theirs):
    print(f"   {what}: precipice {ours:g}, server {theirs:g}")
    assert ours == theirs, what


def counters(findings, before, after):
    grown = lambda name: counter(after, name) - counter(before, name)
    requests, tokens = findings["client"]["requests"], findings["client"]["tokens"]
    assert (requests["completed"], requests["failed"]) == (REQUESTS, 0), requests
    preempted = findings["server"]["preemptions"]["count"]
    check("preemptions", preempted, grown("num_preemptions_total"))
    assert preempted > 0, "the pool of 4 requests did not preempt under 16"
    check("prompt tokens", tokens["prompt"], grown("prompt_tokens_total") - WARMUP * PROMPT - PROBE_PROMPT)
    check("output tokens", tokens["output"], grown("generation_tokens_total") - WARMUP * OUTPUT - PROBE_OUTPUT)
    # Two random prompts may share a first block by no more than chance, which is nil.
    hits = grown("prefix_cache_hits_total")
    print(f"   prefix cache hits: {hits:g} of {grown('prefix_cache_queries_total'):g} tokens")
    assert hits == 0, "prompts were served from the prefix cache"


def latencies(ours, theirs):
    """The clients differ by no more than twice what each differs from itself."""
    assert all(bench["completed"] == REQUESTS for bench in theirs), [bench["completed"] for bench in theirs]
    wrong = []
    for name, percentile in [("ttft", "p50"), ("ttft", "p90"), ("itl", "p50"), ("itl", "p99"), ("e2el", "p50")]:
        a = [findings["client"][f"{name}_ms"][percentile] for findings in ours]
        b = [bench[f"{percentile}_{name}_ms"] for bench in theirs]
        middle = (sum(a) + sum(b)) / 4
        noise = max(abs(a[0] - a[1]), abs(b[0] - b[1])) / middle
        band = max(NARROWEST, 2 * noise)
        off = (sum(a) - sum(b)) / 2 / middle
        shown = lambda pair: " and ".join(f"{value:.1f}" for value in pair)
        print(f"   {name} {percentile}: precipice {shown(a)} ms, vllm bench {shown(b)} ms ({off:+.1%}, band {band:.0%})")
        if abs(off) > band:
            wrong.append(f"{name} {percentile}")
    assert not wrong, f"outside the band: {wrong}"


command, *files = sys.argv[1:]
if command == "counters":
    counters(json.load(open(files[0])), *files[1:])
else:
    read = [json.load(open(path)) for path in files]
    latencies(read[:2], read[2:])
