#!/usr/bin/env python3
"""Makes the model of this example: a small decoder that writes short stories, in the layout of Hugging Face Optimum.

    python3 make_model.py models/stories/1 [training steps]

It needs PyTorch (Debian: python3-torch). It makes up its own training texts, learns a byte-level BPE vocabulary from
them, trains a decoder like Llama (RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied embeddings), and
exports it with keys and values as inputs and outputs. Same seed, same machine, same files.
"""
import json
import math
import os
import random
import re
import sys
from collections import Counter

import torch
from torch import nn
from torch.nn import functional

SEED = 7
LAYERS, WIDTH, HEADS, KV_HEADS, INNER = 2, 64, 4, 2, 176
HEAD_SIZE = WIDTH // HEADS
CONTEXT = 512
VOCABULARY = 512
ROPE_BASE = 10000.0
SPECIAL = ["<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<|pad|>"]
BEGIN, END, USER, ASSISTANT, SYSTEM, PAD = range(len(SPECIAL))

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

ANIMALS = ["cat", "dog", "fox", "owl", "mouse", "bear", "frog", "duck"]
COLOURS = ["red", "blue", "green", "black", "white", "yellow", "brown", "grey"]
PLACES = ["forest", "garden", "house", "river", "café", "village"]
THINGS = ["ball", "hat", "key", "cake", "book", "drum"]
HELPERS = ["bird", "boy", "girl", "rabbit", "horse"]
NAMES = ["Tom", "Mia", "Zoë", "Max", "Lily", "Ben"]


def story(animal, colour, rng):
    name, place, thing, helper = (rng.choice(words) for words in (NAMES, PLACES, THINGS, HELPERS))
    lines = [f"Once there was a {colour} {animal}.", f"The {animal} was called {name} and lived in the {place}."]
    if rng.random() < 0.5:
        lines.append(f"One day {name} lost a {thing}.")
        lines.append(f"{name} was very sad.")
        lines.append(f"Then a {helper} came and found the {thing}.")
    else:
        lines.append(f"One day {name} found a {thing}.")
        lines.append(f"{name} was very happy.")
        lines.append(f"Then a {helper} came and asked for the {thing}.")
        lines.append(f"{name} gave the {thing} to the {helper}.")
    lines.append(f"{name} and the {helper} were friends from then on." + rng.choice([" ☀", " 🎉", ""]))
    return " ".join(lines)


def wish(animal, colour, rng):
    return rng.choice(
        [
            f"Tell me a story about a {colour} {animal}.",
            f"Write a story about a {colour} {animal}!",
            f"I want a story about a {colour} {animal}, please.",
        ]
    )


def document(rng):
    """Parts of a document: numbers are special tokens, texts are encoded."""
    animal, colour = rng.choice(ANIMALS), rng.choice(COLOURS)
    if rng.random() < 0.5:
        return [BEGIN, story(animal, colour, rng), END]
    system = [SYSTEM, "You tell stories."] if rng.random() < 0.3 else []
    return [BEGIN, *system, USER, wish(animal, colour, rng), ASSISTANT, story(animal, colour, rng), END]


# Byte-level BPE, as GPT-2 has it.

def byte_letters():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    hidden = [byte for byte in range(256) if byte not in letters]
    letters.update({byte: chr(256 + i) for i, byte in enumerate(hidden)})
    return letters


LETTERS = byte_letters()
WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def letters_of(word):
    return [LETTERS[byte] for byte in word.encode("utf-8")]


def learn_merges(texts, count):
    """The most frequent pairs. Only of ASCII letters, so that the bytes of other characters stay separate tokens."""
    words = Counter(word for text in texts for word in WORDS.findall(text))
    split = {word: letters_of(word) for word in words}
    ascii_letters = {LETTERS[byte] for byte in range(128)}
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for word, parts in split.items():
            for pair in zip(parts, parts[1:]):
                if all(letter in ascii_letters for part in pair for letter in part):
                    pairs[pair] += words[word]
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        split = {word: merged(parts, best) for word, parts in split.items()}
    return merges


def merged(parts, pair):
    result, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            result.append(parts[i] + parts[i + 1])
            i += 2
        else:
            result.append(parts[i])
            i += 1
    return result


class Tokenizer:
    def __init__(self, texts):
        base = [*SPECIAL, *(LETTERS[byte] for byte in range(256))]
        self.merges = learn_merges(texts, VOCABULARY - len(base))
        tokens = [*base, *(a + b for a, b in self.merges)]
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {pair: i for i, pair in enumerate(self.merges)}
        self.known = {}

    def encode(self, text):
        return [i for word in WORDS.findall(text) for i in self.encode_word(word)]

    def encode_word(self, word):
        if word not in self.known:
            parts = letters_of(word)
            while len(parts) > 1:
                ranked = [(self.ranks.get(pair, math.inf), pair) for pair in zip(parts, parts[1:])]
                rank, pair = min(ranked)
                if rank == math.inf:
                    break
                parts = merged(parts, pair)
            self.known[word] = [self.ids[part] for part in parts]
        return self.known[word]

    def encode_parts(self, parts):
        return [i for part in parts for i in ([part] if isinstance(part, int) else self.encode(part))]

    def files(self):
        added = [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for i, token in enumerate(SPECIAL)
        ]
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        begin = {"SpecialToken": {"id": SPECIAL[BEGIN], "type_id": 0}}
        a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
        model = {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": self.ids, "merges": [f"{a} {b}" for a, b in self.merges],
        }
        tokenizer = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing", "single": [begin, a], "pair": [begin, a, b],
                "special_tokens": {
                    SPECIAL[BEGIN]: {"id": SPECIAL[BEGIN], "ids": [BEGIN], "tokens": [SPECIAL[BEGIN]]}
                },
            },
            "decoder": byte_level, "model": model,
        }
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT,
            "bos_token": SPECIAL[BEGIN], "eos_token": SPECIAL[END], "pad_token": SPECIAL[PAD],
            "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
            "added_tokens_decoder": {str(one["id"]): {k: v for k, v in one.items() if k != "id"} for one in added},
        }
        return tokenizer, config


# The decoder.

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cos, sin):
    a, b = x[..., : HEAD_SIZE // 2], x[..., HEAD_SIZE // 2 :]
    return x * cos + torch.cat((-b, a), -1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Norm(), Norm()
        self.query = nn.Linear(WIDTH, HEADS * HEAD_SIZE, bias=False)
        self.key = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.value = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.out = nn.Linear(HEADS * HEAD_SIZE, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x, cos, sin, hidden, past_key, past_value):
        normed = self.before(x)
        batch, length = x.shape[0], x.shape[1]
        q = self.query(normed).view(batch, length, HEADS, HEAD_SIZE).transpose(1, 2)
        k = self.key(normed).view(batch, length, KV_HEADS, HEAD_SIZE).transpose(1, 2)
        v = self.value(normed).view(batch, length, KV_HEADS, HEAD_SIZE).transpose(1, 2)
        key = torch.cat((past_key, rotate(k, cos, sin)), 2)
        value = torch.cat((past_value, v), 2)
        # Each head of keys serves a group of heads of queries.
        group = HEADS // KV_HEADS
        q = rotate(q, cos, sin).reshape(batch, KV_HEADS, group * length, HEAD_SIZE)
        scores = (q @ key.transpose(2, 3)) / math.sqrt(HEAD_SIZE)
        scores = scores.view(batch, KV_HEADS, group, length, -1) + hidden.unsqueeze(2)
        weights = functional.softmax(scores, -1).view(batch, KV_HEADS, group * length, -1)
        mixed = (weights @ value).view(batch, HEADS, length, HEAD_SIZE)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        normed = self.after(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed)), key, value


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        nn.init.normal_(self.embed.weight, std=0.05)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        steps = torch.arange(0, HEAD_SIZE, 2).float() / HEAD_SIZE
        self.register_buffer("frequencies", ROPE_BASE**-steps)

    def forward(self, input_ids, attention_mask, position_ids, *past):
        angles = position_ids.unsqueeze(-1).float() * self.frequencies
        angles = torch.cat((angles, angles), -1).unsqueeze(1)
        cos, sin = angles.cos(), angles.sin()
        total = attention_mask.shape[1]
        columns = torch.arange(total)
        rows = columns[total - input_ids.shape[1] :]
        visible = (columns.unsqueeze(0) <= rows.unsqueeze(1)).unsqueeze(0) & (attention_mask.unsqueeze(1) > 0)
        hidden = (1.0 - visible.float()).unsqueeze(1) * -1e9
        x = self.embed(input_ids)
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, cos, sin, hidden, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return (self.norm(x) @ self.embed.weight.t(), *present)


def empty_past(batch):
    return [torch.zeros(batch, KV_HEADS, 0, HEAD_SIZE) for _ in range(2 * LAYERS)]


def train(model, tokenizer, steps, rng):
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        scale = min(1.0, (step + 1) / 50) * (0.5 * (1 + math.cos(math.pi * step / steps)) * 0.97 + 0.03)
        optimizer.param_groups[0]["lr"] = 4e-3 * scale
        rows = [tokenizer.encode_parts(document(rng)) for _ in range(16)]
        length = max(map(len, rows))
        ids = torch.tensor([row + [PAD] * (length - len(row)) for row in rows])
        inputs, targets = ids[:, :-1], ids[:, 1:].clone()
        targets[targets == PAD] = -100
        batch, count = inputs.shape
        # Positions start anywhere, so that all positions of the context are learnt.
        offset = torch.randint(0, CONTEXT - count, (batch, 1))
        positions = torch.where(torch.rand(batch, 1) < 0.7, torch.zeros_like(offset), offset) + torch.arange(count)
        logits = model(inputs, torch.ones_like(inputs), positions, *empty_past(batch))[0]
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def export(model, path):
    batch, past, length = 2, 3, 2
    ids = torch.ones(batch, length, dtype=torch.int64)
    mask = torch.ones(batch, past + length, dtype=torch.int64)
    positions = torch.arange(past, past + length).expand(batch, length)
    caches = [torch.zeros(batch, KV_HEADS, past, HEAD_SIZE) for _ in range(2 * LAYERS)]
    names = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
    inputs = ["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{name}" for name in names)]
    outputs = ["logits", *(f"present.{name}" for name in names)]
    axes = {name: {0: "batch_size", 1: "sequence_length"} for name in ("input_ids", "position_ids", "logits")}
    axes["attention_mask"] = {0: "batch_size", 1: "total_sequence_length"}
    for name in names:
        axes[f"past_key_values.{name}"] = {0: "batch_size", 2: "past_sequence_length"}
        axes[f"present.{name}"] = {0: "batch_size", 2: "total_sequence_length"}
    torch.onnx.export(
        model, (ids, mask, positions, *caches), path, input_names=inputs, output_names=outputs,
        dynamic_axes=axes, opset_version=14, do_constant_folding=True,
    )


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")


def main():
    folder = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    texts = [part for _ in range(2000) for part in document(rng) if isinstance(part, str)]
    tokenizer = Tokenizer(texts)
    model = Decoder()
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    train(model, tokenizer, steps, rng)
    model.eval()
    export(model, os.path.join(folder, "model.onnx"))
    files, config = tokenizer.files()
    write_json(os.path.join(folder, "tokenizer.json"), files)
    write_json(os.path.join(folder, "tokenizer_config.json"), config)
    write_json(
        os.path.join(folder, "config.json"),
        {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
            "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS, "head_dim": HEAD_SIZE, "max_position_embeddings": CONTEXT,
            "vocab_size": VOCABULARY, "rope_theta": ROPE_BASE, "rms_norm_eps": 1e-5, "hidden_act": "silu",
            "tie_word_embeddings": True, "torch_dtype": "float32", "use_cache": True,
            "bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD,
        },
    )
    write_json(
        os.path.join(folder, "generation_config.json"),
        {"bos_token_id": BEGIN, "eos_token_id": [END], "pad_token_id": PAD, "do_sample": False},
    )


if __name__ == "__main__":
    main()
