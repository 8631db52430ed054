import type { TokenizerJson } from "./token-spelling.js";
import type { Parts } from "./turns.js";

/** Changes a text before a tokenizer gets it, in parts. */
export type Normalize = (text: string) => Parts<string>;

/** Bytes of a text that is replaced, and of the one in its place. Unicode has 33 at most. */
const LONGEST_TEXT = 256;

/** Characters and replacements between two pauses: about a millisecond. */
const PLACES_OF_PART = 4096;

/**
 * Makes the normalizer of a `precompiled_charsmap` of SentencePiece: a double-array trie over bytes, and the texts that
 * it replaces the longest matches with. The library for `tokenizer.json` only approximates it.
 */
export function charsmapNormalizer(charsmap: Uint8Array): Normalize {
  const view = new DataView(charsmap.buffer, charsmap.byteOffset, charsmap.byteLength);
  const trieBytes = charsmap.length < 4 ? 0 : view.getUint32(0, true);
  const units = Uint32Array.from({ length: Math.min(trieBytes, charsmap.length - 4) / 4 }, (_, i) =>
    view.getUint32(4 + i * 4, true),
  );
  const texts = charsmap.subarray(4 + trieBytes);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The replacement of the longest match at a place, and its length in bytes. */
  const match = (
    bytes: Uint8Array,
    from: number,
  ): { readonly text: string; readonly length: number } | undefined => {
    let longest: { value: number; length: number } | undefined;
    let node = offsetOf(units[0] ?? 0);
    for (let at = from; at < bytes.length && at - from < LONGEST_TEXT; at++) {
      node ^= bytes[at]!;
      const unit = units[node];
      if (unit === undefined || (unit & 0x800000ff) >>> 0 !== bytes[at]!) break;
      node ^= offsetOf(unit);
      if ((unit & 0x100) !== 0) longest = { value: units[node]! & 0x7fffffff, length: at + 1 - from };
    }
    if (longest === undefined) return undefined;
    const found = texts.subarray(longest.value, longest.value + LONGEST_TEXT);
    const end = found.indexOf(0);
    return { text: decoder.decode(end < 0 ? found : found.subarray(0, end)), length: longest.length };
  };
  return function* (text) {
    const bytes = new TextEncoder().encode(text);
    let normalized = "";
    let kept = 0;
    for (let at = 0, places = 1; at < bytes.length; places++) {
      if (places % PLACES_OF_PART === 0) yield;
      const found = match(bytes, at);
      if (found === undefined) {
        at += characterLength(bytes[at]!);
        continue;
      }
      normalized += decoder.decode(bytes.subarray(kept, at)) + found.text;
      at += found.length;
      kept = at;
    }
    return normalized + decoder.decode(bytes.subarray(kept));
  };
}

function offsetOf(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}

function characterLength(first: number): number {
  if (first < 0x80) return 1;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

interface Normalizer {
  readonly type?: string;
  readonly precompiled_charsmap?: string | null;
  readonly normalizers?: readonly Normalizer[];
}

/** Takes a charsmap at the beginning of the normalizer out of a `tokenizer.json`. */
export function takeCharsmap(json: TokenizerJson): {
  readonly json: TokenizerJson;
  readonly normalize: Normalize | undefined;
} {
  const normalizer = Object(json.normalizer) as Normalizer;
  const steps = normalizer.type === "Sequence" ? (normalizer.normalizers ?? []) : [normalizer];
  const [first, ...rest] = steps;
  const charsmap = first?.type === "Precompiled" ? first.precompiled_charsmap : undefined;
  if (typeof charsmap !== "string" || charsmap === "") return { json, normalize: undefined };
  return {
    json: { ...json, normalizer: { type: "Sequence", normalizers: rest } },
    normalize: charsmapNormalizer(Buffer.from(charsmap, "base64")),
  };
}
