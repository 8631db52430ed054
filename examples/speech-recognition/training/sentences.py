"""Sentences of the corpus: what people say to a house, a calendar and a telephone, in about 300 words."""

import random

NAMES = (
    "anna ben carla david emma frank grace henry ida jack karen leo maria nick olivia paul quinn rosa simon tina "
    "ursula victor wendy xavier yara zoe"
).split()
ROOMS = "kitchen bedroom bathroom office garage hall garden cellar attic library".split()
SWITCHED = "light lamp heater fan radio television alarm camera oven printer".split()
OPENED = "door window curtain gate cupboard box".split()
COLOURS = "red green blue yellow white orange purple pink brown black".split()
CITIES = "london paris berlin madrid rome vienna oslo athens dublin lisbon prague warsaw".split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "january february march april may june july august september october november december".split()
GOODS = "milk bread butter cheese coffee tea rice sugar salt flour honey juice".split()
COUNTED = "apples eggs tomatoes lemons potatoes onions carrots bananas".split()
MUSIC = "jazz rock blues opera folk piano guitar violin".split()
TASKS = [
    "water the flowers", "feed the cat", "walk the dog", "pay the rent", "clean the car", "buy a ticket",
    "visit the doctor", "write a letter", "wash the dishes", "read the paper", "charge the phone", "lock the gate",
]
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " \
    "seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
CONDITIONS = "warm cold sunny cloudy windy dry wet".split()


def number(n: int) -> str:
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + ("" if n % 10 == 0 else " " + ONES[n % 10])
    if n < 1000:
        return ONES[n // 100] + " hundred" + ("" if n % 100 == 0 else " and " + number(n % 100))
    return number(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + number(n % 1000))


def sentence(r: random.Random) -> str:
    """One sentence, chosen by the generator of random numbers."""
    c = r.choice
    switch = lambda: c(["turn on", "turn off", "switch on", "switch off"])
    day = lambda: c([f"on {c(DAYS)}", "today", "tomorrow", f"on the {c(ORDINALS)} of {c(MONTHS)}"])
    time = lambda: c([
        f"at {number(r.randint(1, 12))} o'clock",
        f"at half past {number(r.randint(1, 12))}",
        f"at quarter to {number(r.randint(1, 12))}",
        f"at {number(r.randint(1, 12))} {number(r.randint(13, 59))}",
    ])
    forms = [
        (3, lambda: f"{switch()} the {c(SWITCHED)} in the {c(ROOMS)}"),
        (1, lambda: f"please {switch()} the {c(SWITCHED)}"),
        (2, lambda: f"{c(['open', 'close', 'lock'])} the {c(COLOURS)} {c(OPENED)} in the {c(ROOMS)}"),
        (1, lambda: f"is the {c(OPENED)} of the {c(ROOMS)} {c(['open', 'locked', c(COLOURS)])}"),
        (2, lambda: f"set the heater in the {c(ROOMS)} to {number(r.randint(10, 30))} degrees"),
        (1, lambda: f"make the {c(ROOMS)} light {c(COLOURS)} and the {c(['lamp', 'wall'])} {c(COLOURS)}"),
        (2, lambda: f"set a timer for {number(r.randint(2, 59))} {c(['minutes', 'seconds', 'hours'])}"),
        (2, lambda: f"wake {c(['me', c(NAMES)])} {time()} {day()}"),
        (2, lambda: f"call {c(NAMES)} {c(['now', 'again', day(), 'and ' + c(NAMES)])}"),
        (1, lambda: f"send a message to {c(NAMES)} and {c(NAMES)}"),
        (2, lambda: f"tell {c(NAMES)} that {c(NAMES)} is in {c(CITIES)} {day()}"),
        (2, lambda: f"how is the weather in {c(CITIES)} {day()}"),
        (1, lambda: f"will it be {c(CONDITIONS)} or {c(CONDITIONS)} in {c(CITIES)} {day()}"),
        (2, lambda: f"remind me {day()} to {c(TASKS)}"),
        (1, lambda: f"remind {c(NAMES)} to {c(TASKS)} {time()}"),
        (2, lambda: f"add {number(r.randint(2, 40))} {c(COUNTED)} to the shopping list"),
        (1, lambda: f"we need {c(GOODS)} {c(GOODS)} and {c(COUNTED)}"),
        (1, lambda: f"play some {c(MUSIC)} in the {c(ROOMS)}"),
        (2, lambda: f"what is {number(r.randint(0, 99))} {c(['plus', 'minus', 'times'])} {number(r.randint(0, 99))}"),
        (3, lambda: f"my number is {' '.join(c(ONES[:10]) for _ in range(r.randint(3, 7)))}"),
        (1, lambda: f"the price is {number(r.randint(100, 9999))} euros"),
        (1, lambda: f"book a table for {number(r.randint(2, 12))} {day()} {time()}"),
        (1, lambda: f"when does the train to {c(CITIES)} leave {c(DAYS)}"),
        (1, lambda: c(["yes", "no", "stop", "thank you", "good morning", "good night", "help me please", "hello"])
            + " " + c(NAMES)),
        # Words in no order keep the network from guessing what it does not hear.
        (4, lambda: " ".join(c(WORDS) for _ in range(r.randint(3, 7)))),
    ]
    weights, makers = zip(*forms)
    return r.choices(makers, weights)[0]()


WORDS: list = []
_seen = set()
_r = random.Random(1)
WORDS.append("the")
for _ in range(20_000):
    _seen.update(sentence(_r).split())
WORDS = sorted(_seen)
