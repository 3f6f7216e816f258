"""llama.cpp's own server on a free port of this machine.

Takes its options as JSON, says "listening ADDRESS" once it can be asked, and ends when its
standard input does, so that it never outlives the test that started it.
"""

import json
import os
import sys
import threading


def leave_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=leave_with_parent, daemon=True).start()

import xllamacpp  # noqa: E402  it takes a while, and the parent may end meanwhile

options = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = options["gguf"]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = options["context"] * options["slots"]
params.n_parallel = options["slots"]
params.cpuparams.n_threads = options["threads"]
params.cpuparams_batch.n_threads = options["threads"]
params.n_gpu_layers = 0
params.offline = True

server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
threading.Event().wait()
