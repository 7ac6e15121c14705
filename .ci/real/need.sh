#!/usr/bin/env bash
# Sees to it that a command is there: installs its Debian package if it is not.
# usage: need.sh COMMAND PACKAGE     fails when the command is missing afterwards
set -euo pipefail
command -v "$1" >/dev/null && exit 0
(apt-get update -q && apt-get install -qy --no-install-recommends "$2") >/dev/null 2>&1 || true
command -v "$1" >/dev/null
