#!/usr/bin/env python3
"""Opens a page in Chromium and prints what a function of it returns: browse.py PROFILE NETLOG PAGE FUNCTION [BROWSER]

Speaks the DevTools protocol over a pipe, so that a page is seen with real frames, scrolling and printing. No name
resolves; the browser's own log of requests goes to NETLOG.
"""
import json
import os
import subprocess
import sys

profile, netlog, page, function = sys.argv[1:5]
browser = sys.argv[5] if len(sys.argv) > 5 else "chromium"
here, theirs = os.pipe(), os.pipe()  # what the browser reads, what it writes


def hand_over():
    # Through high numbers, so that neither end lies where the other goes.
    read, write = os.dup2(here[0], 100), os.dup2(theirs[1], 101)
    os.dup2(read, 3)
    os.dup2(write, 4)


child = subprocess.Popen(
    [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
     "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
     f"--log-net-log={netlog}", "--remote-debugging-pipe", "--window-size=1280,800", "about:blank"],
    preexec_fn=hand_over, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(here[0])
os.close(theirs[1])
out, answers = os.fdopen(here[1], "wb", buffering=0), os.fdopen(theirs[0], "rb")


def messages():
    rest = b""
    while chunk := answers.read1(65536):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from map(json.loads, whole)
    sys.exit("the browser went away")


stream, last = messages(), 0


def call(method, session=None, **params):
    global last
    last += 1
    asked = {"id": last, "method": method, "params": params} | ({"sessionId": session} if session else {})
    out.write(json.dumps(asked).encode() + b"\0")
    answer = next(message for message in stream if message.get("id") == last)
    if "error" in answer:
        sys.exit(f"{method}: {answer['error']}")
    return answer["result"]


target = call("Target.createTarget", url="about:blank")["targetId"]
session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
call("Page.enable", session)
call("Page.navigate", session, url="file://" + os.path.abspath(page))
next(message for message in stream if message.get("method") == "Page.loadEventFired")
seen = call("Runtime.evaluate", session, expression=f"{function}()", awaitPromise=True, returnByValue=True)
call("Browser.close")
child.wait()
if "exceptionDetails" in seen:
    sys.exit(json.dumps(seen["exceptionDetails"], indent=1))
print(json.dumps(seen["result"]["value"]))
