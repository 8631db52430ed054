"""CTC prefix beam search over the likeliest units of each frame, with hot words and an n-gram model of words."""

import math

BLANK = 0
IMPOSSIBLE = -math.inf


def add(a: float, b: float) -> float:
    """Logarithm of the sum of two probabilities given by their logarithms."""
    if a < b:
        a, b = b, a
    return a if b == IMPOSSIBLE else a + math.log1p(math.exp(b - a))


def candidates(log_probs, ids, cutoff: float):
    """Units of a frame in order of their probability, until they have the cutoff in sum."""
    seen = 0.0
    for log_prob, unit in zip(log_probs, ids):
        yield log_prob, unit
        seen += math.exp(log_prob)
        if seen >= cutoff:
            return


class HotWords:
    """Words with a bonus, in logarithms of probability, for each time that a text has one."""

    def __init__(self, bonuses: dict, vocabulary: list):
        self.vocabulary = vocabulary
        self.bonuses = {"▁" + word.replace(" ", "▁"): bonus for word, bonus in bonuses.items()}
        self.longest = max(map(len, self.bonuses), default=0)

    def bonus(self, tail: str) -> float:
        return sum(bonus for word, bonus in self.bonuses.items() if tail.endswith(word))

    def tail(self, before: str, unit: int) -> str:
        text = before + self.vocabulary[unit]
        return text[-self.longest :] if self.longest else ""


class Ngram:
    """An n-gram model of words in an ARPA file: each word adds its weighted logarithm of probability, and a bonus.

    Raises ValueError with the place of a line that does not fit.
    """

    def __init__(self, path: str, vocabulary: list, weight: float = 0.5, word_bonus: float = 1.0):
        self.vocabulary, self.weight, self.word_bonus = vocabulary, weight, word_bonus
        #: True if each unit is a word: no unit begins words.
        self.whole_words = not any(unit.startswith("▁") for unit in vocabulary)
        self.probabilities, self.backoffs, self.order = {}, {}, 0
        self.load(path)
        self.unknown = self.probabilities.get(("<unk>",), -100.0)
        self.start = ("<s>",) if self.order > 1 and ("<s>",) in self.probabilities else ()

    def load(self, path: str):
        counts, length, left, number, text = [], 0, 0, 0, ""
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                text = line.strip()
                fail = lambda expected: ValueError(f"{path}, line {number}: expected {expected}, got '{text}'")
                if not text or length is None:
                    continue
                if length == 0:
                    length = -1 if text == "\\data\\" else 0
                elif text.startswith("\\"):
                    if left:
                        raise fail(f"{left} more n-grams of {length} words, as counted")
                    following = max(0, length) + 1
                    last = following > len(counts)
                    expected = "\\end\\" if last else f"\\{following}-grams:"
                    if not counts:
                        raise fail("'ngram 1=COUNT'")
                    if text != expected:
                        raise fail(f"'{expected}'")
                    length, left = (None, 0) if last else (following, counts[following - 1])
                elif length == -1:
                    name, _, count = text.partition("=")
                    if name.split() != ["ngram", str(len(counts) + 1)] or not count.strip().isdigit():
                        raise fail(f"'ngram {len(counts) + 1}=COUNT'")
                    counts.append(int(count))
                else:
                    if not left:
                        raise fail(f"{counts[length - 1]} n-grams of {length} words, as counted")
                    left -= 1
                    fields = text.split()
                    words = tuple(fields[1 : length + 1])
                    try:
                        probability, *backoff = map(float, [fields[0], *fields[length + 1 :]])
                    except ValueError:
                        probability, backoff = math.nan, []
                    if len(words) != length or len(backoff) > 1 or not probability <= 0:
                        raise fail("a logarithm of a probability, words, and perhaps a logarithm of a weight")
                    unknown = [word for word in words if length > 1 and (word,) not in self.probabilities]
                    if unknown or words in self.probabilities:
                        raise fail("new n-grams of words that are n-grams of 1 word")
                    self.probabilities[words] = probability
                    self.backoffs[words] = backoff[0] if backoff else 0.0
        if length is not None:
            name = "end" if length else "data"
            raise ValueError(f"{path}: expected a line '\\{name}\\', got none")
        self.order = len(counts)

    def log10(self, before: tuple, word: str) -> float:
        """Logarithm of the probability of a word after others."""
        total = 0.0
        for first in range(max(0, len(before) - self.order + 1), len(before)):
            context = before[first:]
            if (*context, word) in self.probabilities:
                return total + self.probabilities[(*context, word)]
            total += self.backoffs.get(context, 0.0)
        return total + self.probabilities.get((word,), self.unknown)

    def score(self, before: tuple, word: str) -> float:
        """What a complete word adds to the score of a text."""
        return self.weight * self.log10(before, word) * math.log(10) + self.word_bonus if word else 0.0

    def advance(self, before: tuple, word: str, unit: int):
        """What a unit adds, the complete words after it, and the one that it belongs to."""
        piece, added = self.vocabulary[unit], 0.0
        if not (self.whole_words or piece.startswith("▁")):
            return 0.0, before, word + piece
        if word:
            added = self.score(before, word)
            before = (*before, word if (word,) in self.probabilities else "<unk>")
        return added, before, piece.replace("▁", "", 1)


def load_hot_words(path: str) -> dict:
    """Reads `word: bonus` lines, the part of YAML that such files use.

    Raises ValueError with the place of a line that is something else.
    """
    bonuses = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.split("#")[0].strip()
            if not text:
                continue
            word, colon, bonus = text.rpartition(":")
            word = word.strip().strip("\"'")
            try:
                bonuses[word] = float(bonus)
            except ValueError:
                bonuses[word] = math.nan
            if not (colon and word and math.isfinite(bonuses[word])):
                raise ValueError(f"{path}, line {number}: expected 'word: bonus', got '{text}'")
    return bonuses


def load_vocabulary(path: str, size: int) -> list:
    """Reads `unit id` lines. Raises ValueError unless the ids are those from 0 to size - 1."""
    units = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 2 or not fields[1].isdigit() or int(fields[1]) in units:
                raise ValueError(f"{path}, line {number}: expected a unit and a new id, got '{line.strip()}'")
            units[int(fields[1])] = fields[0]
    if size and len(units) != size:
        raise ValueError(f"{path}: expected {size} units, as the decoder has, got {len(units)}")
    missing = next((i for i in range(len(units)) if i not in units), None)
    if missing is not None:
        raise ValueError(f"{path}: expected a unit with id {missing}, got none")
    return [units[i] for i in range(len(units))]


def prefix_beam_search(
    log_probs, ids, beam: int, cutoff: float = 0.9999, hot: HotWords = None, language: Ngram = None
):
    """The likeliest texts of a signal, best first, as (score, units).

    log_probs and ids have a list for each frame: the likeliest units, best first. A prefix has two probabilities: that
    its last frame is a blank, and that it is not. The bonus of a prefix counts for its rank and its score alone. The
    language model scores a word when the next one begins, and the last word at the end.
    """
    # A prefix: probability with a blank at the end, without one, its bonus, the end of its text, its complete words,
    # and the word after them.
    start = language.start if language else ()
    prefixes = {(): (0.0, IMPOSSIBLE, (0.0, "", start, ""))}
    rank = lambda item: -(add(item[1][0], item[1][1]) + item[1][2][0])

    def longer_text(text, unit):
        bonus, tail, words, word = text
        if hot:
            tail = hot.tail(tail, unit)
            bonus += hot.bonus(tail)
        if language:
            added, words, word = language.advance(words, word, unit)
            bonus += added
        return bonus, tail, words, word

    for frame_log_probs, frame_ids in zip(log_probs, ids):
        following = {}
        chosen = list(candidates(frame_log_probs, frame_ids, cutoff))
        for prefix, (blank, other, text) in prefixes.items():
            whole = add(blank, other)
            last = prefix[-1] if prefix else None
            for log_prob, unit in chosen:
                if unit == BLANK:
                    had = following.get(prefix, (IMPOSSIBLE, IMPOSSIBLE, text))
                    following[prefix] = (add(had[0], whole + log_prob), had[1], text)
                    continue
                if unit == last:
                    had = following.get(prefix, (IMPOSSIBLE, IMPOSSIBLE, text))
                    following[prefix] = (had[0], add(had[1], other + log_prob), text)
                    added = blank + log_prob
                    if added == IMPOSSIBLE:
                        continue
                else:
                    added = whole + log_prob
                longer = (*prefix, unit)
                had = following.get(longer) or (IMPOSSIBLE, IMPOSSIBLE, longer_text(text, unit))
                following[longer] = (had[0], add(had[1], added), had[2])
        prefixes = dict(sorted(following.items(), key=rank)[:beam])
    found = []
    for prefix, (blank, other, (bonus, _, words, word)) in prefixes.items():
        last = language.score(words, word) if language else 0.0
        found.append((add(blank, other) + bonus + last, list(prefix)))
    return sorted(found, key=lambda one: -one[0])


def text_of(units: list, vocabulary: list) -> str:
    return "".join(vocabulary[unit] for unit in units).replace("▁", " ").strip()
