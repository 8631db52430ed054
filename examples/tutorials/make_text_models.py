#!/usr/bin/env python3
"""Makes the three models of this folder: small encoders like BERT, which read texts as word pieces.

    python3 make_models.py models [sentiment|questions|zero-shot ...]

It needs PyTorch (Debian: python3-torch). It makes up its own texts, with a vocabulary of whole words and of letters for
all other words. The models:

- sentiment: one text to two logits, negative and positive;
- questions: a question and a text to two logits for each token, for the start and the end of the answer;
- zero-shot: a text and a statement about it to three logits: contradiction, neutral and entailment. Two words of each
  topic are never a label in training, so that labels which the model has not seen as labels can be tried.

Same seed, same machine, same files.
"""
import json
import os
import random
import string
import sys

import torch
from torch import nn
from torch.nn import functional

SEED = 11
WIDTH, HEADS, INNER, POSITIONS = 64, 4, 128, 128
PAD, UNKNOWN, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

THINGS = "film book soup service hotel song phone game room story coffee show".split()
GOOD = "good great wonderful lovely excellent brilliant fine charming superb delightful".split()
BAD = "bad awful terrible boring dreadful poor ugly dull horrible disappointing".split()
LOVE = "loved enjoyed liked admired".split()
HATE = "hated disliked regretted loathed".split()
VERY = ["", "", "really ", "very ", "so ", "quite "]

NAMES = "anna ben clara david emma felix grace henry iris jack".split()
CITIES = "paris london berlin madrid rome vienna oslo lisbon".split()
JOBS = "teacher doctor painter farmer pilot baker lawyer singer".split()
FOODS = "bread cheese rice soup fish cake apples noodles".split()
COLOURS = "red blue green black white yellow brown grey".split()
ANIMALS = "cat dog horse rabbit parrot goat".split()

TOPICS = {
    "sport": "football tennis team match goal player coach race stadium referee",
    "cooking": "kitchen recipe oven sauce chef pepper flour dinner pan spice",
    "music": "guitar concert melody drums band orchestra violin choir piano rhythm",
    "weather": "rain storm sunshine wind cloud snow thunder forecast temperature fog",
    "travel": "airport luggage passport journey tourist train flight hostel map island",
    "money": "bank loan salary price market shares budget tax invoice savings",
    "health": "hospital nurse medicine fever vaccine patient surgery symptom clinic bandage",
    "space": "rocket planet orbit astronaut telescope galaxy comet satellite moon star",
    "animals": "zoo lion elephant whale eagle wolf tiger snake monkey bear",
    "school": "pupil lesson exam homework classroom textbook grade lecture student essay",
}
TOPICS = {topic: words.split() for topic, words in TOPICS.items()}
FILLER = ["yesterday", "today", "people", "everyone", "nobody", "we", "they", "this", "that", "it", "the", "a", "an", "of",
          "about", "with", "and", "or", "was", "is", "are", "were", "had", "has", "have", "saw", "talked", "heard", "found",
          "near", "for", "in", "on", "at", "to", "all", "day", "long", "again", "new", "old", "big", "small", "by", "text",
          "morning", "evening", "before", "after", "still", "next", "some", "many"]
HYPOTHESES = ["this text is about {}.", "it is about {}.", "the text is about {}."]


def vocabulary():
    words = set(FILLER)
    for group in (THINGS, GOOD, BAD, LOVE, HATE, NAMES, CITIES, JOBS, FOODS, COLOURS, ANIMALS, *TOPICS.values()):
        words.update(group)
    words.update(TOPICS)
    words.update("really very so quite not never but i my would recommend wo n t don didn ' , . ? ! - : ;".split())
    words.update("where does live what likes like colour who work as works which animal s named called food job lives".split())
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*letters, *("##" + letter for letter in letters), *sorted(word for word in words if len(word) > 1 or not word.isalnum())]
    return SPECIAL + list(dict.fromkeys(pieces))


VOCABULARY = vocabulary()
NUMBERS = {token: number for number, token in enumerate(VOCABULARY)}


def tokenizer_json():
    special = [
        {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i, t in enumerate(SPECIAL)
    ]
    def piece(kind, **values):
        return {kind: values}
    cls = piece("SpecialToken", id="[CLS]", type_id=0)
    first_sep, second_sep = piece("SpecialToken", id="[SEP]", type_id=0), piece("SpecialToken", id="[SEP]", type_id=1)
    first, second = piece("Sequence", id="A", type_id=0), piece("Sequence", id="B", type_id=1)
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": POSITIONS, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": PAD, "pad_type_id": 0, "pad_token": "[PAD]",
        },
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, first, first_sep],
            "pair": [cls, first, first_sep, second, second_sep],
            "special_tokens": {
                t: {"id": t, "ids": [NUMBERS[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": NUMBERS,
        },
    }


def pieces_of(word):
    if word in NUMBERS:
        return [NUMBERS[word]]
    letters = [NUMBERS.get(letter if i == 0 else "##" + letter) for i, letter in enumerate(word)]
    return [UNKNOWN] if None in letters else letters


def encode(text):
    for mark in ".,?!'-:;":
        text = text.replace(mark, f" {mark} ")
    return [number for word in text.lower().split() for number in pieces_of(word)]


def pair(first, second):
    """Numbers of the tokens and of the parts that they belong to."""
    a, b = encode(first), encode(second)
    return [CLS, *a, SEP, *b, SEP], [0] * (len(a) + 2) + [1] * (len(b) + 1)


def opinion(rng):
    """A sentence, and whether it is positive. After "but", only the second half counts."""
    positive = rng.random() < 0.5
    thing = rng.choice(THINGS)
    kind = rng.random()
    negated = rng.random() < 0.35
    if kind < 0.55:
        word = rng.choice(GOOD if positive != negated else BAD)
        verb = rng.choice(["was", "is"])
        text = f"the {thing} {verb} {'not ' if negated else ''}{rng.choice(VERY)}{word}"
    elif kind < 0.9:
        word = rng.choice(LOVE if positive != negated else HATE)
        text = f"i {'never ' if negated else rng.choice(['', 'really '])}{word} {rng.choice(['the', 'this', 'that'])} {thing}"
    else:
        text = f"i would {'' if positive else 'not '}recommend {rng.choice(['the', 'this'])} {thing}"
    return text, positive


def sentiment_batch(rng, size):
    rows, labels = [], []
    for _ in range(size):
        text, positive = opinion(rng)
        if rng.random() < 0.3:
            text = f"{opinion(rng)[0]} but {text}"
        rows.append(([CLS, *encode(text + rng.choice([".", "!", ""])), SEP], None))
        labels.append(int(positive))
    return padded(rows), torch.tensor(labels)


def facts(rng):
    """A text of facts about two people, and questions with the words that answer them. It has each kind of fact once."""
    names = rng.sample(NAMES, 2)
    lines, questions = [], []
    cities, jobs, foods, colours = (rng.sample(group, len(names)) for group in (CITIES, JOBS, FOODS, COLOURS))
    kinds = rng.sample(range(4), 4)
    for name, city, job, food, colour in zip(names, cities, jobs, foods, colours):
        animal = rng.choice(ANIMALS)
        possible = [
            (f"{name} lives in {city}.", [(f"where does {name} live?", city), (f"who lives in {city}?", name)]),
            (f"{name} works as a {job}.", [(f"what job does {name} have?", job), (f"who works as a {job}?", name)]),
            (f"{name} likes {food}.", [(f"what food does {name} like?", food), (f"who likes {food}?", name)]),
            (f"{name} has a {colour} {animal}.", [(f"what animal does {name} have?", f"{colour} {animal}"),
                                                 (f"who has a {colour} {animal}?", name)]),
        ]
        for line, asked in (possible[kinds.pop()] for _ in range(2)):
            lines.append(line)
            questions += [(question, answer, line) for question, answer in asked]
    rng.shuffle(lines)
    return lines, questions


def question_batch(rng, size):
    rows, spans = [], []
    while len(rows) < size:
        lines, questions = facts(rng)
        question, answer, line = rng.choice(questions)
        tokens, types = pair(question, " ".join(lines))
        before = len(encode(question)) + 2 + sum(len(encode(one)) for one in lines[: lines.index(line)])
        words = encode(line)
        wanted = encode(answer)
        at = next(i for i in range(len(words)) if words[i : i + len(wanted)] == wanted)
        rows.append((tokens, types))
        spans.append((before + at, before + at + len(wanted) - 1))
    return padded(rows), torch.tensor(spans)


def statement_batch(rng, size, held_out=False):
    rows, labels = [], []
    for _ in range(size):
        topic = rng.choice(list(TOPICS))
        kind = rng.choice([0, 0, 1, 2, 2])
        words = rng.sample(TOPICS[topic], rng.randint(2, 4)) if kind != 1 else []
        text = words + [rng.choice(FILLER) for _ in range(rng.randint(4, 10))]
        rng.shuffle(text)
        about = topic if kind == 2 else rng.choice([one for one in TOPICS if one != topic])
        # The last two words of a topic are labels only when they are tried.
        possible = TOPICS[about][-2:] if held_out else [about, about, *TOPICS[about][:-2]]
        rows.append(pair(" ".join(text), rng.choice(HYPOTHESES).format(rng.choice(possible))))
        labels.append(kind)
    return padded(rows), torch.tensor(labels)


def padded(rows):
    longest = max(len(tokens) for tokens, _ in rows)
    ids = torch.tensor([tokens + [PAD] * (longest - len(tokens)) for tokens, _ in rows])
    types = torch.tensor([(types or [0] * len(tokens)) + [0] * (longest - len(tokens)) for tokens, types in rows])
    return ids, (ids != PAD).long(), types


def waves():
    """Places as waves of several lengths: a distance between two is then the same turn everywhere, which is easy to learn."""
    angles = torch.arange(POSITIONS).unsqueeze(1) * torch.exp(-torch.arange(WIDTH // 2) * 0.25)
    return torch.cat([angles.sin(), angles.cos()], 1) * 0.7


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        rows, length = x.shape[0], x.shape[1]
        q, k, v = (t.reshape(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2) for t in self.qkv(x).split(WIDTH, 2))
        scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + mask
        mixed = (scores.softmax(3) @ v).transpose(1, 2).reshape(rows, length, WIDTH)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Encoder(nn.Module):
    """An encoder like BERT: the first token stands for the text, or each token for itself."""

    def __init__(self, layers, outputs, each_token):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), WIDTH)
        self.places, self.types = nn.Embedding(POSITIONS, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, outputs)
        self.each_token = each_token
        nn.init.normal_(self.words.weight, std=0.5)
        if not each_token:
            nn.init.normal_(self.places.weight, std=0.5)
            return
        # Tokens begin by looking at tokens like themselves: a word of the question finds the word in the text.
        for layer in self.layers:
            layer.qkv.weight.data[WIDTH : 2 * WIDTH] = layer.qkv.weight.data[:WIDTH] = 2 * torch.eye(WIDTH)
        self.places.weight.data = waves()

    def hidden(self, input_ids, attention_mask, token_type_ids):
        places = torch.arange(input_ids.shape[1]).unsqueeze(0)
        x = self.norm(self.words(input_ids) + self.places(places) + self.types(token_type_ids))
        mask = (1.0 - attention_mask.to(x.dtype)).unsqueeze(1).unsqueeze(1) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.hidden(input_ids, attention_mask, token_type_ids)
        if self.each_token:
            logits = self.head(x) + (1.0 - (attention_mask * token_type_ids).to(x.dtype)).unsqueeze(2) * -10000.0
            return logits[:, :, 0], logits[:, :, 1]
        return self.head(x[:, 0])


def start_with_neighbours(model):
    """Words that stand beside the same words begin with similar vectors, as in GloVe: from counts of what is in a text."""
    rng = random.Random(SEED)
    counts = torch.ones(len(VOCABULARY), len(VOCABULARY)) * 0.1
    for _ in range(200):
        (ids, _, types), _ = statement_batch(rng, 50)
        there = torch.zeros(ids.shape[0], len(VOCABULARY)).scatter_(1, ids * (1 - types), 1.0)
        counts += there.t() @ there
    share = counts / counts.sum()
    surprise = (share / (share.sum(0, keepdim=True) * share.sum(1, keepdim=True))).log().clamp(min=0)
    u, s, _ = torch.linalg.svd(surprise)
    vectors = u[:, :WIDTH] * s[:WIDTH].sqrt()
    model.words.weight.data = vectors / vectors.norm(dim=1, keepdim=True) * 4


def train(name, model, make_batch, steps, size=48):
    rng = random.Random(SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps, pct_start=0.1)
    for step in range(steps):
        inputs, wanted = make_batch(rng, size)
        loss = loss_of(model(*inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"{name} {step}: loss {loss.item():.4f}", flush=True)


def loss_of(logits, wanted):
    if isinstance(logits, tuple):
        return sum(functional.cross_entropy(one, wanted[:, i]) for i, one in enumerate(logits)) / 2
    return functional.cross_entropy(logits, wanted)


def accuracy(model, batch):
    inputs, wanted = batch
    with torch.no_grad():
        logits = model(*inputs)
    if isinstance(logits, tuple):
        right = (logits[0].argmax(1) == wanted[:, 0]) & (logits[1].argmax(1) == wanted[:, 1])
        return right.float().mean().item()
    return (logits.argmax(1) == wanted).float().mean().item()


def export(model, directory, outputs, example):
    os.makedirs(directory, exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "rows", 1: "tokens"} for name in names}
    axes.update({name: {0: "rows", 1: "tokens"} if model.each_token else {0: "rows"} for name in outputs})
    torch.onnx.export(
        model, example, os.path.join(directory, "model.onnx"), input_names=names, output_names=outputs,
        dynamic_axes=axes, opset_version=14,
    )


MODELS = {
    "sentiment": lambda: (Encoder(1, 2, False), sentiment_batch, 800, ["logits"]),
    "questions": lambda: (Encoder(3, 2, True), question_batch, 1500, ["start_logits", "end_logits"]),
    "zero-shot": lambda: (Encoder(2, 3, False), statement_batch, 2000, ["logits"]),
}
FOLDERS = {"sentiment": "sentiment_bert", "questions": "answer_bert", "zero-shot": "statement_bert"}
TOKENIZERS = {"sentiment": "sentiment_tokens", "questions": "answer_tokens", "zero-shot": "statement_tokens"}


def main():
    root, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    torch.set_num_threads(1)
    for name in names:
        directory = os.path.join(root, TOKENIZERS[name], "1")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(tokenizer_json(), file, ensure_ascii=False, separators=(",", ":"))
        torch.manual_seed(SEED)
        model, make_batch, steps, outputs = MODELS[name]()
        if name == "zero-shot":
            start_with_neighbours(model)
        train(name, model, make_batch, steps)
        model.eval()
        rng = random.Random(SEED + 1)
        print(f"{name}: accuracy {accuracy(model, make_batch(rng, 1000)):.3f}")
        if name == "zero-shot":
            print(f"{name}: accuracy with unseen labels {accuracy(model, statement_batch(rng, 1000, held_out=True)):.3f}")
        export(model, os.path.join(root, FOLDERS[name], "1"), outputs, make_batch(rng, 2)[0])


main()
