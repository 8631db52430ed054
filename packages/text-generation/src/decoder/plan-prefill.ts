import { commonLength, isWorthSharing } from "./prefix-cache.js";

/** A text whose prompt is not computed yet. */
export interface Prefilling {
  readonly tokens: readonly number[];
  /** Tokens that have their keys and values. */
  readonly computed: number;
  readonly pending: number;
}

/** Part of a prompt that the next pass computes. */
export interface PrefillPart<T> {
  readonly text: T;
  readonly count: number;
}

/**
 * Chooses which prompts the next pass computes, and how much of them. The first one sets the pace: others join if they
 * have as many computed tokens, so that their past needs no padding, and if all rows, padded to the longest, stay below
 * the limit. A prompt waits for one before it that begins alike, whose keys and values it takes over afterwards.
 *
 * @param waiting texts in the order of their admission
 * @param limit tokens of a pass, padding included
 * @param shares true if prompts take over the beginning of others
 */
export function planPrefill<T extends Prefilling>(
  waiting: readonly T[],
  limit: number,
  shares: boolean,
): PrefillPart<T>[] {
  const [first] = waiting;
  if (first === undefined) return [];
  const parts: PrefillPart<T>[] = [{ text: first, count: Math.min(first.pending, limit) }];
  let longest = parts[0]!.count;
  for (const text of waiting.slice(1)) {
    if (text.computed !== first.computed) continue;
    if (shares && parts.some(({ text: before }) => gains(text, before))) continue;
    const count = Math.min(text.pending, limit);
    const columns = Math.max(longest, count);
    if ((parts.length + 1) * columns > limit) continue;
    parts.push({ text, count });
    longest = columns;
  }
  return parts;
}

/** True if a text can take over more from another, once that is computed, than it has computed itself. */
function gains(text: Prefilling, before: Prefilling): boolean {
  const common = Math.min(commonLength(text.tokens, before.tokens), text.tokens.length - 1);
  return isWorthSharing(common) && common > text.computed;
}
