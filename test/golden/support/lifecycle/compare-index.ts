import type { IndexRow } from "./scenario.js";

/** A model without a version has a row with the reason, where the recorded server has none. */
const NO_VERSION = /^at least one version must be available under the version policy of model '[^']+'$/;

/** Words before the reason of an error. */
const WORDS = /^(Invalid argument|Internal|Not found|Unsupported|Unavailable): /;

/** The position at the end of our own parse errors. */
const PLACE = / \(at [\w.[\]]+\)$/gm;

/**
 * Lists how two repository indexes differ. Unloading takes the recorded server a moment, ours none or a moment: both
 * are `unloaded`. A row without a reason in the recording may have one here, in the words of the recorded server's
 * log.
 * @param log lines of the recorded server's log so far
 */
export function compareIndex(
  expected: readonly IndexRow[],
  got: readonly IndexRow[],
  log: readonly string[] = [],
): string[] {
  const wanted = expected.map(settled);
  const found = got
    .map(settled)
    .filter((row) => !isWithoutVersion(row) || wanted.some(({ name }) => name === row.name));
  const same =
    wanted.length === found.length && wanted.every((row, i) => text(row) === text(bare(found[i]!, row, log)));
  return same ? [] : [`index: expected ${wanted.map(text).join(" ")}, got ${got.map(text).join(" ")}`];
}

/** True while a version is being unloaded, which ends at some time. */
export function isUnloading(rows: readonly IndexRow[]): boolean {
  return rows.some(({ state }) => state === "UNLOADING");
}

function settled(row: IndexRow): IndexRow {
  const reason = row.reason?.replace(/\n\nAt:\n[\s\S]*$/, "");
  if (row.state === "UNLOADING") return { ...row, state: "UNAVAILABLE", reason: "unloaded" };
  return reason === undefined ? row : { ...row, reason };
}

function isWithoutVersion({ version, state, reason = "" }: IndexRow): boolean {
  return version === undefined && state === "UNAVAILABLE" && NO_VERSION.test(reason);
}

/** A row in the recorded server's form, when its added reason is in the log. */
function bare(row: IndexRow, wanted: IndexRow, log: readonly string[]): IndexRow {
  const { name, version, state, reason = "" } = row;
  if (wanted.state !== undefined || version !== undefined || state !== "UNAVAILABLE") return row;
  const said = reason.replace(WORDS, "").replace(PLACE, "").split("\n");
  const lines = said.flatMap((line) => line.split(/: (?=Error parsing)/));
  const isTold = lines.some((line) => log.some((entry) => entry.includes(line)));
  return isWithoutVersion(row) || isTold ? { name } : row;
}

function text({ name, version = "", state = "", reason = "" }: IndexRow): string {
  return `${name}:${version}:${state}:${reason}`;
}
