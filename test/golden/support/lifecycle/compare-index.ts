import type { IndexRow } from "./scenario.js";

/**
 * Tells how two repository indexes differ. Unloading takes the recorded server a moment, ours none or a moment: both
 * are `unloaded`. Rows that the recorded server leaves without a word, or leaves out, may say why a model is not
 * there.
 */
export function compareIndex(expected: readonly IndexRow[], got: readonly IndexRow[]): string[] {
  const wanted = expected.map(settled);
  const found = got.map(settled).filter((row) => !isExplained(row) || hasBareRow(wanted, row));
  const same =
    wanted.length === found.length && wanted.every((row, i) => text(row) === text(bare(found[i]!, wanted)));
  return same ? [] : [`index: expected ${wanted.map(text).join(" ")}, got ${got.map(text).join(" ")}`];
}

/** True when a version is on its way out, which is over at some time or other. */
export function isUnloading(rows: readonly IndexRow[]): boolean {
  return rows.some(({ state }) => state === "UNLOADING");
}

function settled(row: IndexRow): IndexRow {
  const reason = row.reason?.replace(/\n\nAt:\n[\s\S]*$/, "");
  if (row.state === "UNLOADING") return { ...row, state: "UNAVAILABLE", reason: "unloaded" };
  return reason === undefined ? row : { ...row, reason };
}

/** A row that says why there is no version. */
function isExplained({ version, state, reason }: IndexRow): boolean {
  return (
    version === undefined &&
    state === "UNAVAILABLE" &&
    reason !== undefined &&
    reason !== "model appears in two or more repositories"
  );
}

function hasBareRow(rows: readonly IndexRow[], { name }: IndexRow): boolean {
  return rows.some((row) => row.name === name && row.state === undefined);
}

function bare(row: IndexRow, wanted: readonly IndexRow[]): IndexRow {
  return isExplained(row) && hasBareRow(wanted, row) ? { name: row.name } : row;
}

function text({ name, version = "", state = "", reason = "" }: IndexRow): string {
  return `${name}:${version}:${state}:${reason}`;
}
