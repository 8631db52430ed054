/** A token and how likely it was. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
}

/** The token that was chosen, and the most likely ones in descending order. */
export interface RankedToken extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

interface TokenEntry {
  readonly logprob?: number | null;
  readonly rank?: number | null;
  readonly decoded_token?: string | null;
}

/** OpenAI's value for a logprob of minus infinity. */
const LEAST_LOGPROB = -9999;

/** A key that is a number. Inside of a string, such a key has escaped quotes. */
const NUMBER_KEY = /([{,]\s*)"(\d+)"(?=\s*:)/g;
/** A number that Python writes and JSON does not have. */
const NOT_FINITE = /:\s*(?:-?Infinity|NaN)\b/g;

/**
 * Reads the logprobs of vLLM's Triton backend: an array with an object for each token, from numbers of tokens to
 * `{ logprob, rank, decoded_token }`. The first key is the token that was chosen.
 *
 * @returns undefined for `null`, and for a text that cannot be read
 */
export function readLogprobs(text: string): RankedToken[] | undefined {
  if (text === "" || text === "null") return undefined;
  try {
    // Objects of JavaScript sort keys that are numbers, so the numbers become names.
    const named = text.replace(NUMBER_KEY, '$1"t$2"').replace(NOT_FINITE, `:${LEAST_LOGPROB}`);
    const tokens = JSON.parse(named) as unknown;
    if (!Array.isArray(tokens)) return undefined;
    return tokens.flatMap((token) => (token === null ? [] : [rankedToken(token)]));
  } catch {
    return undefined;
  }
}

function rankedToken(token: Readonly<Record<string, TokenEntry>>): RankedToken {
  const entries = Object.values(token);
  const [chosen = {}] = entries;
  const top = [...entries].sort((a, b) => rankOf(a) - rankOf(b));
  return { ...tokenLogprob(chosen), top: top.map(tokenLogprob) };
}

function rankOf({ rank }: TokenEntry): number {
  return rank ?? Number.MAX_SAFE_INTEGER;
}

function tokenLogprob({ decoded_token, logprob }: TokenEntry): TokenLogprob {
  return { token: decoded_token ?? "", logprob: logprob ?? LEAST_LOGPROB };
}
