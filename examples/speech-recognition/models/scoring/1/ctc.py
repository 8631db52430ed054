"""CTC prefix beam search over the likeliest units of each frame, with hot words."""

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


def prefix_beam_search(log_probs, ids, beam: int, cutoff: float = 0.9999, hot: HotWords = None):
    """The likeliest texts of a signal, best first, as (score, units).

    log_probs and ids have a list for each frame: the likeliest units, best first. A prefix has two probabilities: that
    its last frame is a blank, and that it is not. The bonus of a prefix counts for its rank and its score alone.
    """
    # A prefix: probability with a blank at the end, without one, its bonus, and the end of its text.
    prefixes = {(): (0.0, IMPOSSIBLE, 0.0, "")}
    rank = lambda item: -(add(item[1][0], item[1][1]) + item[1][2])
    for frame_log_probs, frame_ids in zip(log_probs, ids):
        following = {}
        chosen = list(candidates(frame_log_probs, frame_ids, cutoff))
        for prefix, (blank, other, bonus, tail) in prefixes.items():
            whole = add(blank, other)
            last = prefix[-1] if prefix else None
            for log_prob, unit in chosen:
                if unit == BLANK:
                    had = following.get(prefix, (IMPOSSIBLE, IMPOSSIBLE, bonus, tail))
                    following[prefix] = (add(had[0], whole + log_prob), had[1], bonus, tail)
                    continue
                if unit == last:
                    had = following.get(prefix, (IMPOSSIBLE, IMPOSSIBLE, bonus, tail))
                    following[prefix] = (had[0], add(had[1], other + log_prob), bonus, tail)
                    added = blank + log_prob
                    if added == IMPOSSIBLE:
                        continue
                else:
                    added = whole + log_prob
                longer = (*prefix, unit)
                had = following.get(longer)
                if had is None:
                    longer_tail = hot.tail(tail, unit) if hot else ""
                    had = (IMPOSSIBLE, IMPOSSIBLE, bonus + (hot.bonus(longer_tail) if hot else 0.0), longer_tail)
                following[longer] = (had[0], add(had[1], added), had[2], had[3])
        prefixes = dict(sorted(following.items(), key=rank)[:beam])
    return [(-rank(item), list(item[0])) for item in prefixes.items()]


def text_of(units: list, vocabulary: list) -> str:
    return "".join(vocabulary[unit] for unit in units).replace("▁", " ").strip()
