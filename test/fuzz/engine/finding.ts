/** A fault, with the smallest input that was found for it. */
export interface Finding {
  readonly input: Uint8Array;
  /** Error, with the first line of its stack inside the repository. */
  readonly text: string;
}

/** Findings of one place of the packages are one, and so are those with one text but for numbers and quoted parts. */
export function keyOf(text: string): string {
  const [, name, place] = /^(\w+): [\s\S]*( at .*\/packages\/.*)$/.exec(text) ?? [];
  return place === undefined ? text.replace(/[\d.e+-]+|'[^']*'|"[^"]*"/g, "#") : name + place;
}

/** Text of a thrown value: its name, its message, and the first line of its stack inside the repository. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return `thrown: ${String(error)}`;
  const place = error.stack
    ?.split("\n")
    .find((line) => /^\s+at (?!expectThat).*(?:packages|fuzz)\//.test(line));
  return `${error.name}: ${error.message.slice(0, 500)}${place === undefined ? "" : ` ${place.trim()}`}`;
}
