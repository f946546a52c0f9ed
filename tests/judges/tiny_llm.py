"""A real llama.cpp server in this process, with a random model of half a megabyte that is written at test time."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import xllamacpp

CONTEXT = 65_536
WIDTH, LAYERS, HEADS, FORWARD = 32, 1, 1, 64  # one head: attention over a prompt of 30,000 bytes is what it takes
TERSE = 0.5  # how much a quotation mark is preferred: strings end soon, and so do answers


def write_model(path: Path, seed: int = 7) -> None:
    """A llama architecture with a byte tokenizer and random weights: it obeys grammars, and knows nothing."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    tokens = [*_byte_characters(), "<|bos|>", "<|eos|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 3])
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")
    dice = np.random.default_rng(seed)
    for name, shape in _tensors(len(tokens)):
        ones = name.endswith("norm.weight")
        values = np.ones(shape) if ones else dice.normal(0, 0.05, shape)
        if name == "token_embd.weight":
            values[:, 0] = 1.0
        if name == "output.weight":
            values[tokens.index('"'), 0] = TERSE
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: Path, parallel: int = 2) -> xllamacpp.Server:
    """The server on a free port of the loopback address."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = parallel
    parameters.n_batch = parameters.n_ubatch = 2048
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1  # threads that wait for each other spin
    parameters.warmup = False
    parameters.port = 0
    parameters.use_jinja = True
    return xllamacpp.Server(parameters)


def _tensors(vocabulary: int) -> list[tuple[str, tuple[int, ...]]]:
    square, up, down = (WIDTH, WIDTH), (FORWARD, WIDTH), (WIDTH, FORWARD)
    tensors: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (vocabulary, WIDTH)),
        ("output.weight", (vocabulary, WIDTH)),
        ("output_norm.weight", (WIDTH,)),
    ]
    for layer in range(LAYERS):
        shapes = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": square, "attn_k": square, "attn_v": square,
                  "attn_output": square, "ffn_gate": up, "ffn_up": up, "ffn_down": down}  # fmt: skip
        tensors += [(f"blk.{layer}.{name}.weight", shape) for name, shape in shapes.items()]
    return tensors


def _byte_characters() -> list[str]:
    """The printable character of every byte, as GPT-2's tokenizer writes them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]
