#!/usr/bin/env python3
"""Let PyPI's CUDA build of torch import on a machine without the nvidia-* packages.

usage: stub-cuda-libs.py SITE_PACKAGES      (needs gcc, nm, readelf)

PyPI has torch only as a CUDA build (for Linux x86-64), which needs some 1.7 GiB of nvidia-* wheels just to be
imported.  This writes tiny stand-ins for those libraries into torch/lib (found by its RPATH $ORIGIN): every
symbol that torch wants is a function that returns 100 (cudaErrorNoDevice), so torch.cuda.is_available() is False.
CPU use only.
"""
import collections, glob, os, re, subprocess, sys, tempfile
L = os.path.join(sys.argv[1], "torch", "lib")
run = lambda *a: subprocess.run(a, check=True, capture_output=True, text=True).stdout
libs = [f for f in glob.glob(L + "/*.so*") if not os.path.islink(f)]
have = {os.path.basename(f) for f in libs}
# libraries made by an earlier call of this script do not count
mark = os.path.join(L, ".cuda-stubs")
old = set(open(mark).read().split()) if os.path.exists(mark) else set()
libs = [f for f in libs if os.path.basename(f) not in old]; have -= old
SYS = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp)\.so|ld-linux)")
missing, ver_lib, want, defined = set(), {}, collections.defaultdict(set), set()
und = set()
for f in libs:
    missing |= {n for n in re.findall(r"NEEDED.*\[(.+?)\]", run("readelf", "-d", f)) if n not in have and not SYS.match(n)}
    cur = None
    for line in run("readelf", "-W", "-V", f).splitlines():
        if m := re.search(r"File: (\S+)", line): cur = m[1]
        elif (m := re.search(r"Name: (\S+)\s+Flags", line)) and cur: ver_lib[m[1]] = cur
    for line in run("nm", "-D", f).splitlines():
        p = line.split()
        if p[-2] == "U": und.add(p[-1])
        elif p[-2] != "w": defined.add(p[-1].split("@")[0])
PRE = [("nccl", "libnccl"), ("pnccl", "libnccl"), ("cudnn", "libcudnn"), ("cublasLt", "libcublasLt"), ("cublas", "libcublas."), ("cusparseLt", "libcusparseLt"),
       ("cusparse", "libcusparse."), ("cusolver", "libcusolver"), ("cufft", "libcufft"), ("curand", "libcurand"), ("cuFile", "libcufile"), ("cufile", "libcufile"),
       ("nvrtc", "libnvrtc"), ("nvshmem", "libnvshmem"), ("cupti", "libcupti"), ("cuda", "libcudart"), ("__cuda", "libcudart"), ("cu", "libcuda.")]
for s in und:
    n, _, v = s.partition("@"); v = v.lstrip("@")
    if v and ver_lib.get(v) in missing: want[ver_lib[v]].add((n, v))
    elif not v and n not in defined:
        for p, l in PRE:
            if n.startswith(p):
                t = [m for m in missing if m.startswith(l)]
                if t: want[t[0]].add((n, "")); break
made = []
with tempfile.TemporaryDirectory() as d:
    for lib in sorted(missing):
        asm = ".text\n.Lmsg: .asciz \"stub: no CUDA here\"\n.p2align 4\n"
        vers = collections.defaultdict(list)
        for n, v in sorted(want[lib]):
            body = "lea .Lmsg(%rip),%rax\nret" if re.search(r"GetError(String|Name)|getErrorString|GetStatusString|get_error_string|GetLastErrorString", n, re.I) else "mov $100,%eax\nret"
            asm += f".globl {n}\n.type {n},@function\n{n}:\n{body}\n.size {n},.-{n}\n"
            if v: vers[v].append(n)
        open(d + "/s.s", "w").write(asm + '.section .note.GNU-stack,"",@progbits\n')
        args = ["gcc", "-shared", "-nostdlib", "-o", f"{L}/{lib}", d + "/s.s", f"-Wl,-soname,{lib}"]
        if vers:
            open(d + "/v.map", "w").write("".join(f"{v} {{ global: {'; '.join(ns)}; }};\n" for v, ns in vers.items()))
            args.append(f"-Wl,--version-script={d}/v.map")
        subprocess.run(args, check=True)
        made.append(lib); print(f"{lib:24s} {len(want[lib]):5d} symbols {os.path.getsize(L + '/' + lib):7d} bytes")
open(mark, "w").write("\n".join(made))
