/*
 * A labelled set of questions, made by rules: each intent has several wordings and several subjects. Questions with one
 * label have one answer. Questions of one intent with other subjects look alike and have other answers, and so have
 * opposite intents: they are what a cache by meaning gets wrong.
 */

export interface LabelledQuestion {
  readonly text: string;
  /** Questions of one label have the same answer. */
  readonly label: string;
}

interface Intent {
  readonly name: string;
  /** Wordings, with `*` for the subject. */
  readonly wordings: readonly string[];
  readonly subjects: readonly string[];
}

const COUNTRIES = ["France", "Spain", "Kenya", "Peru", "Japan", "Norway"];
const PRODUCTS = ["headphones", "a jacket", "a phone", "a lamp"];
const AMOUNTS = ["2", "3", "12", "20"];

const INTENTS: readonly Intent[] = [
  {
    name: "capital",
    wordings: [
      "What is the capital of *?",
      "Tell me the capital city of *",
      "Which city is the capital of *?",
    ],
    subjects: COUNTRIES,
  },
  {
    name: "currency",
    wordings: [
      "Which currency is used in *?",
      "What money do people pay with in *?",
      "What is the currency of *?",
    ],
    subjects: COUNTRIES,
  },
  {
    name: "return",
    wordings: ["How do I return *?", "I want to send * back", "What do I do to give * back?"],
    subjects: PRODUCTS,
  },
  {
    name: "warranty",
    wordings: [
      "How long is the warranty on *?",
      "For how long are you liable for *?",
      "Warranty period of *?",
    ],
    subjects: PRODUCTS,
  },
  {
    name: "to-miles",
    wordings: ["How many miles are * kilometres?", "Convert * km to miles", "* kilometres in miles"],
    subjects: AMOUNTS,
  },
  {
    name: "to-kilometres",
    wordings: ["How many kilometres are * miles?", "Convert * miles to km", "* miles in kilometres"],
    subjects: AMOUNTS,
  },
  {
    name: "turn-on",
    wordings: ["How do I turn * on?", "Where do I enable *?", "I want to switch on *"],
    subjects: ["notifications", "dark mode", "two-factor login"],
  },
  {
    name: "turn-off",
    wordings: ["How do I turn * off?", "Where do I disable *?", "I want to switch off *"],
    subjects: ["notifications", "dark mode", "two-factor login"],
  },
  {
    name: "login",
    wordings: [
      "I forgot my *",
      "How can I reset my *?",
      "My * does not work any more, how do I get a new one?",
    ],
    subjects: ["password", "PIN", "user name"],
  },
  {
    name: "delivery",
    wordings: ["When does my * arrive?", "Where is my * now?", "How can I track my *?"],
    subjects: ["parcel", "refund", "letter"],
  },
];

/** All questions, in an order that looks random and is always the same. */
export function labelledQuestions(): LabelledQuestion[] {
  const questions = INTENTS.flatMap(({ name, wordings, subjects }) =>
    subjects.flatMap((subject) =>
      wordings.map((wording) => ({ text: wording.replace("*", subject), label: `${name} ${subject}` })),
    ),
  );
  let state = 7;
  const keyed = questions.map((question) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return { question, key: state };
  });
  return keyed.sort((a, b) => a.key - b.key).map(({ question }) => question);
}
