import { bytes } from "./bytes.js";
import { border, type MutationSource, pick, type Structure } from "./structure.js";

/** A string, a number, a word, white space, or one other character. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[A-Za-z_][\w.]*|\s+|[\s\S]/g;

/** Most tokens that one change adds. */
const MAX_TOKENS = 2000;

const CLOSING: Readonly<Record<string, string>> = { "[": "]", "{": "}", "(": ")", "<": ">" };

/**
 * Text of words, numbers, strings and nested brackets: JSON, `config.pbtxt`, templates, lists of fields. Parts are single
 * tokens and groups in brackets.
 */
export const text: Structure = {
  mutate(input, source) {
    const { random } = source;
    const tokens = tokensOf(input);
    if (tokens.length === 0 || random.chance(0.15)) return bytes.mutate(input, source);
    return Buffer.from(pick(random, CHANGES)(tokens, source).join(""), "latin1");
  },
};

type Change = (tokens: string[], source: MutationSource) => string[];

const CHANGES: readonly Change[] = [
  function remove(tokens, { random }) {
    const [from, to] = partOf(tokens, random);
    return tokens.toSpliced(from, to - from);
  },
  function repeat(tokens, { random }) {
    const [from, to] = partOf(tokens, random);
    const separator = random.chance(0.7) ? [","] : [];
    const times = random.chance(0.05) ? 200 : 1 + random.below(3);
    const copies = Math.min(times, Math.ceil(MAX_TOKENS / (to - from)));
    const part = Array.from({ length: copies }, () => [...separator, ...tokens.slice(from, to)]).flat();
    return [...tokens.slice(0, to), ...part, ...tokens.slice(to)];
  },
  function replaceByPart(tokens, { random, other }) {
    const [from, to] = partOf(tokens, random);
    const source = random.chance(0.5) ? tokens : tokensOf(other);
    if (source.length === 0) return tokens;
    return [...tokens.slice(0, from), ...source.slice(...partOf(source, random)), ...tokens.slice(to)];
  },
  function exchange(tokens, { random }) {
    const [a, b] = [partOf(tokens, random), partOf(tokens, random)].sort(([x], [y]) => x - y);
    if (a![1] > b![0]) return tokens;
    const at = (start: number, end?: number) => tokens.slice(start, end);
    return [...at(0, a![0]), ...at(...b!), ...at(a![1], b![0]), ...at(...a!), ...at(b![1])];
  },
  function replaceByToken(tokens, { random, token }) {
    const [from, to] = partOf(tokens, random);
    const word = Buffer.from(token()).toString("latin1");
    const quoted = tokens[from]!.startsWith('"') && random.chance(0.8) ? `"${word}"` : word;
    return tokens.toSpliced(from, to - from, quoted);
  },
  replaceNumber,
  replaceNumber,
  function changeString(tokens, source) {
    const at = findFrom(tokens, source.random, (token) => token.startsWith('"'));
    if (at === undefined) return tokens;
    const inner = Buffer.from(tokens[at]!.slice(1, -1), "latin1");
    return tokens.with(at, `"${Buffer.from(bytes.mutate(inner, source)).toString("latin1")}"`);
  },
  function nest(tokens, { random }) {
    const [from, to] = partOf(tokens, random);
    const open = pick(random, Object.keys(CLOSING));
    const depth = random.chance(0.2) ? 2000 : 1 + random.below(4);
    return [
      ...tokens.slice(0, from),
      open.repeat(depth),
      ...tokens.slice(from, to),
      CLOSING[open]!.repeat(depth),
      ...tokens.slice(to),
    ];
  },
];

function replaceNumber(tokens: string[], { random }: MutationSource): string[] {
  const at = findFrom(tokens, random, (token) => /^-?\d/.test(token));
  if (at === undefined) return tokens;
  const number = pick(random, [
    () => String(border(random)),
    () => `${border(random)}.5`,
    () => `${border(random)}e${random.below(400) - 200}`,
    () => String(random.below(20) - 3),
    () => pick(random, ["NaN", "-Infinity", "1e999", "-0", "0x10", "01", "1.", "1_0"]),
  ])();
  return tokens.with(at, number);
}

function tokensOf(input: Uint8Array): string[] {
  return Buffer.from(input).toString("latin1").match(TOKENS) ?? [];
}

function findFrom(
  tokens: readonly string[],
  random: MutationSource["random"],
  accepts: (token: string) => boolean,
): number | undefined {
  const start = random.below(tokens.length);
  for (let i = 0; i < tokens.length; i++) {
    const at = (start + i) % tokens.length;
    if (accepts(tokens[at]!)) return at;
  }
  return undefined;
}

/** One token, or the group that it opens. */
function partOf(tokens: readonly string[], random: MutationSource["random"]): [from: number, to: number] {
  const from = findFrom(tokens, random, (token) => token.trim() !== "") ?? 0;
  const open = tokens[from]!;
  const close = CLOSING[open];
  if (close === undefined) return [from, from + 1];
  for (let at = from, depth = 0; at < tokens.length; at++) {
    if (tokens[at] === open) depth++;
    else if (tokens[at] === close && --depth === 0) return [from, at + 1];
  }
  return [from, from + 1];
}
