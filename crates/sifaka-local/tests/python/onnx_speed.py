"""Documents a second of the same MiniLM weights in ONNX Runtime, to hold our own speed against.

    V/bin/pip install numpy tokenizers onnx onnxruntime
    V/bin/python onnx_speed.py FOLDER_OF_ALL_MINILM_L6_V2 CRANFIELD_FOLDER [DOCUMENTS [THREADS]]

Documents are sorted by length and padded in batches of 16, as sentence-transformers does it.
"""

import json
import sys
import time
from pathlib import Path

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from embedders import minilm, safetensors


def graph(w, config):
    nodes, constants = [], {}

    def constant(name, value):
        constants[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def node(kind, *inputs, **attributes):
        out = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def weight(name):
        return constant(name, w[name].astype(numpy.float32))

    def linear(x, name):
        matrix = constant(name + ".t", w[name + ".weight"].T.astype(numpy.float32))
        return node("Add", node("MatMul", x, matrix), weight(name + ".bias"))

    def norm(x, name):
        epsilon = config["layer_norm_eps"]
        return node("LayerNormalization", x, weight(name + ".weight"), weight(name + ".bias"), epsilon=epsilon)

    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    e = "embeddings."
    segment = w[e + "token_type_embeddings.weight"][0]
    places = constant("places", (w[e + "position_embeddings.weight"] + segment).astype(numpy.float32))
    words = node("Gather", weight(e + "word_embeddings.weight"), "ids")
    length = node("Slice", node("Shape", "ids"), constant("one", numpy.array([1])), constant("two", numpy.array([2])))
    places = node("Slice", places, constant("nought", numpy.array([0])), length, constant("axis", numpy.array([0])))
    x = norm(node("Add", words, places), e + "LayerNorm")
    split = constant("split", numpy.array([0, 0, heads, hidden // heads]))
    joined = constant("joined", numpy.array([0, 0, hidden]))
    scale = constant("scale", numpy.float32((hidden // heads) ** -0.5))
    for n in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{n}."
        part = lambda p: node("Reshape", linear(x, layer + "attention.self." + p), split)
        q = node("Transpose", node("Mul", part("query"), scale), perm=[0, 2, 1, 3])
        k = node("Transpose", part("key"), perm=[0, 2, 3, 1])
        v = node("Transpose", part("value"), perm=[0, 2, 1, 3])
        shares = node("Softmax", node("Add", node("MatMul", q, k), "mask"), axis=-1)
        context = node("Transpose", node("MatMul", shares, v), perm=[0, 2, 1, 3])
        context = linear(node("Reshape", context, joined), layer + "attention.output.dense")
        x = norm(node("Add", x, context), layer + "attention.output.LayerNorm")
        wide = node("Gelu", linear(x, layer + "intermediate.dense"))
        x = norm(node("Add", x, linear(wide, layer + "output.dense")), layer + "output.LayerNorm")
    nodes.append(helper.make_node("Identity", [x], ["states"]))
    made = helper.make_graph(
        nodes,
        "minilm",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["batch", 1, 1, "length"]),
        ],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["batch", "length", hidden])],
        list(constants.values()),
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main(folder, data, count, threads):
    config = json.loads((folder / "config.json").read_text())
    w = safetensors(folder / "model.safetensors")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph(w, config).SerializeToString(), options)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    raw = (data / "cran.all.1400").read_text().split("\n.I ")
    texts = [document.split("\n.W\n")[1] for document in raw[:count]]

    def embed(texts):
        ids = sorted((encoding.ids for encoding in tokenizer.encode_batch(texts)), key=len)
        vectors = []
        for at in range(0, len(ids), 16):
            batch = ids[at : at + 16]
            longest = max(map(len, batch))
            padded = numpy.zeros((len(batch), longest), dtype=numpy.int64)
            mask = numpy.zeros((len(batch), longest), dtype=numpy.float32)
            for row, one in enumerate(batch):
                padded[row, : len(one)] = one
                mask[row, : len(one)] = 1
            hidden = (1 - mask[:, None, None, :]) * numpy.float32(-1e9)
            states = session.run(None, {"ids": padded, "mask": hidden})[0]
            means = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            vectors.extend(means / numpy.linalg.norm(means, axis=1, keepdims=True))
        return ids, vectors

    ids, vectors = embed(texts[:3])
    for one, vector in zip(ids, vectors):
        assert float(minilm(w, config, one) @ vector) > 0.99999
    best, least = 1e9, 1e9
    for _ in range(3):
        start, used = time.perf_counter(), time.process_time()
        embed(texts)
        best = min(best, time.perf_counter() - start)
        least = min(least, time.process_time() - used)
    print(
        f"onnxruntime {onnxruntime.__version__}: {len(texts) / best:.1f} documents a second,"
        f" {len(texts) / least:.1f} a second of processor time"
    )


numbers = [int(n) for n in sys.argv[3:]]
main(Path(sys.argv[1]), Path(sys.argv[2]), *(numbers + [200, 0][len(numbers) :]))
