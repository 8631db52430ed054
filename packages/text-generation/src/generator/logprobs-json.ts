import type { TokenProbability, YieldedLogprob } from "./yielded-piece.js";

/** In place of minus infinity, which JSON cannot express; the value that OpenAI answers. */
const LOWEST_LOGPROB = -9999;

/**
 * The JSON of the output `logprobs`: an object for each token, from the number of a token to its probability. The
 * generated token comes first, then the most likely ones. It is written here because `JSON.stringify` would sort the
 * numbers.
 */
export function logprobsJson(tokens: readonly YieldedLogprob[]): string {
  return `[${tokens.map(tokenJson).join(",")}]`;
}

function tokenJson(chosen: YieldedLogprob): string {
  const top = chosen.top ?? [];
  const position = top.findIndex((one) => keyOf(one) === keyOf(chosen));
  const entries = [entry(chosen, position < 0 ? top.length + 1 : position + 1)];
  for (const [i, one] of top.entries()) {
    if (i !== position) entries.push(entry(one, i + 1));
  }
  return `{${entries.join(",")}}`;
}

function entry(one: TokenProbability, position: number): string {
  const { token, logprob, rank = position } = one;
  const known = { logprob: Math.max(logprob, LOWEST_LOGPROB), rank, decoded_token: token };
  return `${JSON.stringify(keyOf(one))}:${JSON.stringify(known)}`;
}

function keyOf({ id, token }: TokenProbability): string {
  return id === undefined ? token : String(id);
}
