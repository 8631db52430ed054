#!/usr/bin/env python3
"""Makes the encoder of this example: a small transformer that gives sentences of one meaning close vectors.

    python3 make_encoder.py models/encoder [training steps]

It needs PyTorch (Debian: python3-torch). It makes up its own training sentences, learns a WordPiece vocabulary of them,
and trains the encoder with pairs of sentences that mean the same (contrastive learning). The files have the layout of
sentence-transformers in ONNX: input_ids and attention_mask in, last_hidden_state out; their mean is the embedding.
"""
import json
import os
import random
import re
import sys

import torch
from torch import nn
from torch.nn import functional

SEED, LAYERS, WIDTH, HEADS, CONTEXT = 7, 2, 48, 4, 64
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, _, CLS, SEP, _ = range(len(SPECIAL))

# Each meaning: things that one does, and what with. All combinations mean the same.
MEANINGS = [
    (["forgot", "lost", "cannot remember", "want to reset", "need to change"], ["my password", "the passphrase", "my secret word", "how to log in"]),
    (["want to cancel", "would like to end", "need to stop", "wish to terminate"], ["my subscription", "the plan", "my membership", "the monthly contract"]),
    (["want back", "would like to have refunded", "need returned", "ask for"], ["my money", "the payment", "the amount that you charged", "a refund"]),
    (["cannot find", "am waiting for", "did not receive", "want to track"], ["my parcel", "the delivery", "my package", "where the shipment is"]),
    (["need", "would like to download", "cannot open", "am missing"], ["the invoice", "my bill", "a receipt", "the tax document"]),
    (["want to change", "need to update", "would like to correct", "entered a wrong"], ["my address", "street and city", "postal code", "the place where I live"]),
    (["want to use", "have", "cannot enter", "would like to redeem"], ["a voucher", "the discount code", "a coupon", "a gift card"]),
    (["see", "get", "am stuck at", "keep seeing"], ["an error message", "a crash of the app", "a blank screen", "that the app does not work"]),
    (["want to delete", "would like to erase", "need you to remove", "want to close"], ["my account", "all of my data", "my profile", "what you store about me"]),
    (["want to talk to", "would like to call", "need to reach", "want to write to"], ["a human", "your support team", "somebody who helps", "an employee"]),
    (["want to return", "would like to send back", "received", "need to exchange"], ["a broken article", "damaged goods", "the wrong size", "a faulty product"]),
    (["want to know", "would like to ask about", "cannot find", "need"], ["your opening hours", "when the shop is open", "the hours on sunday", "your closing time", "when you close"]),
]
NOISE = "a all and any at back by can code did do does for from get give how if in is it lost month my new not of old on one or our out shop so that the then this to was we when where why with work you your zu xq ab ci no e".split()
OPENINGS = ["i {}", "i {} please", "what can i do if i {}", "hello , i {}", "how does it work when i {}", "help : i {}", "today i {}", "we {}"]


def sentence(meaning, rng):
    actions, things = MEANINGS[meaning]
    thing = rng.choice(things)
    text = rng.choice(OPENINGS).format(f"{rng.choice(actions)} {thing}") if rng.random() < 0.7 else thing
    return " ".join(disturbed(text.split(), rng)) + rng.choice(["", " .", " ?"])


def disturbed(words, rng):
    """Leaves out some words, exchanges others for words without a meaning, and puts some before and behind."""
    kept = [rng.choice(NOISE) if rng.random() < 0.1 else word for word in words if rng.random() < 0.85]
    around = [[rng.choice(NOISE) for _ in range(rng.randrange(4))] for _ in range(2)]
    return [*around[0], *(kept or words), *around[1]]


def words_of(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def vocabulary(texts):
    letters = [chr(code) for code in range(97, 123)] + list("0123456789.,?!:;'()-")
    words = sorted({word for text in texts for word in words_of(text)} - set(letters))
    pieces = [f"##{letter}" for letter in letters if letter.isalnum()]
    # Common endings, so that other forms of a word keep its piece.
    endings = ["##s", "##ed", "##ing", "##er", "##ly", "##led", "##ling", "##d"]
    return list(dict.fromkeys([*SPECIAL, *letters, *pieces, *endings, *words]))


class Encoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(size, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        hidden = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for block in self.blocks:
            x = block(x, hidden)
        return self.norm(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, hidden):
        rows, length = x.shape[0], x.shape[1]
        qkv = self.qkv(self.first(x)).reshape(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = torch.softmax(q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + hidden, dim=-1)
        x = x + self.out((weights @ v).permute(0, 2, 1, 3).reshape(rows, length, WIDTH))
        return x + self.outer(torch.relu(self.inner(self.second(x))))


def batch_of(texts, ids):
    rows = [[CLS, *(ids.get(word, 1) for word in words_of(text)), SEP] for text in texts]
    length = max(map(len, rows))
    padded = torch.tensor([row + [PAD] * (length - len(row)) for row in rows])
    return padded, (padded != PAD).long()


def embed(encoder, texts, ids):
    tokens, mask = batch_of(texts, ids)
    hidden = encoder(tokens, mask) * mask[:, :, None]
    return functional.normalize(hidden.sum(1) / mask.sum(1, keepdim=True), dim=-1)


def main(directory, steps):
    rng = random.Random(SEED)
    torch.manual_seed(SEED)
    texts = [sentence(meaning, rng) for meaning in range(len(MEANINGS)) for _ in range(300)]
    vocab = vocabulary(texts)
    ids = {word: i for i, word in enumerate(vocab)}
    encoder = Encoder(len(vocab))
    print(f"{sum(p.numel() for p in encoder.parameters())} parameters, {len(vocab)} tokens")
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3)
    for step in range(steps):
        meanings = list(range(len(MEANINGS))) * 2
        first = embed(encoder, [sentence(meaning, rng) for meaning in meanings], ids)
        second = embed(encoder, [sentence(meaning, rng) for meaning in meanings], ids)
        same = torch.tensor([[float(a == b) for b in meanings] for a in meanings])
        scores = functional.log_softmax(first @ second.T / 0.1, dim=-1)
        loss = -(scores * same).sum() / same.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    write(directory, encoder.eval(), vocab, ids)


def write(directory, encoder, vocab, ids):
    os.makedirs(directory, exist_ok=True)
    names = {0: "rows", 1: "tokens"}
    torch.onnx.export(
        encoder,
        batch_of(["my password", "hello"], ids),
        os.path.join(directory, "model.onnx"),
        opset_version=14,
        input_names=["input_ids", "attention_mask"],
        output_names=["last_hidden_state"],
        dynamic_axes={"input_ids": names, "attention_mask": names, "last_hidden_state": names},
    )
    special = [{"id": i, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, word in enumerate(SPECIAL)]
    piece = lambda kind, name: {kind: {"id": name, "type_id": 0}}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("SpecialToken", "[CLS]"), piece("Sequence", "A"), piece("SpecialToken", "[SEP]")],
            "pair": [],
            "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids},
    }
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": CONTEXT, "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400)
