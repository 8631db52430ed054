/**
 * The known name that `name` is most likely a misspelling of. Case, `-` and `_` do not count. Undefined if more than a
 * third of the characters differ in every known name, and none contains it.
 *
 * @example `closestName("max_batchsize", ["maxBatchSize", "batcher"]) // "maxBatchSize"`
 */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  const given = plain(name);
  let closest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const meant = plain(candidate);
    const distance = editDistance(given, meant);
    if (distance >= least || distance > Math.max(given.length, meant.length) / 3) continue;
    closest = candidate;
    least = distance;
  }
  return closest ?? containing(given, known);
}

/** Length from which a part of a name says which name is meant: `port`, `name`. */
const PART_LENGTH = 4;

function containing(part: string, known: Iterable<string>): string | undefined {
  if (part.length < PART_LENGTH) return undefined;
  for (const candidate of known) if (plain(candidate).includes(part)) return candidate;
  return undefined;
}

function plain(name: string): string {
  return name.replace(/[-_]/g, "").toLowerCase();
}

/** Number of edits between two names: a character more, less or another one, or two neighbours exchanged. */
function editDistance(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const exchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (exchanged) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}
