import { compareValues, show } from "../compare-values.js";
import { type JsonValue, parseJson, toJsonValue } from "../json-value.js";
import type { IndexRow } from "../lifecycle/scenario.js";
import type { LoadAnswer, LoadCase, PlayedLoad } from "./load-case.js";

/** Lists how a load differs from the expected outcome. */
export function compareLoad(expected: LoadCase, got: PlayedLoad): string[] {
  const { load, index_others: others, config, config_raw: raw, metadata, ready } = expected;
  if (load === undefined) return ["the recording tells of no answer"];
  const levelled = withFurtherFindings(expected, got);
  const differences = [
    ...compareAnswer(levelled.load as LoadAnswer, got.load),
    ...compareRows("index", levelled.index ?? [], got.index),
  ];
  if (others !== undefined) differences.push(...compareMembers(others, got.index_others));
  // The text distinguishes integers from other numbers, and keeps all of their digits.
  const [wanted, found] = raw === undefined ? [config, got.config] : [undefined, undefined];
  if (raw !== undefined)
    differences.push(...compareValues(sorted(parseJson(raw)), sorted(parseJson(got.config_raw))));
  if (wanted !== undefined)
    differences.push(...compareValues(sorted(toJsonValue(wanted)), sorted(toJsonValue(found))));
  if (metadata !== undefined) {
    differences.push(...compareValues(sorted(toJsonValue(metadata)), sorted(toJsonValue(got.metadata))));
  }
  if (ready !== undefined && ready !== got.ready) {
    differences.push(`ready: expected ${ready}, got ${got.ready}`);
  }
  return differences;
}

function compareAnswer(expected: LoadAnswer, got: LoadAnswer): string[] {
  const status =
    expected.status === got.status ? [] : [`load: expected status ${expected.status}, got ${got.status}`];
  const [wanted, found] = [errorFor(expected), errorFor(got)];
  return [...status, ...(wanted === found ? [] : [`load: expected "${wanted}", got "${found}"`])];
}

function errorFor({ body }: LoadAnswer): string {
  return body === "" ? "" : withoutTraceback(body.error);
}

/** Errors of a Python model include the lines of its code. */
export function withoutTraceback(text: string): string {
  return text.replace(/\n\nAt:\n[\s\S]*?\n?(?=;\n|$)/, "");
}

function compareRows(what: string, expected: readonly IndexRow[], got: readonly IndexRow[]): string[] {
  const shown = (rows: readonly IndexRow[]) =>
    rows.map(({ reason, ...row }) =>
      Object.fromEntries(
        Object.entries({ ...row, reason: reason && withoutTraceback(reason) }).filter(
          ([, value]) => value !== undefined,
        ),
      ),
    );
  const differences = compareValues(toJsonValue(shown(expected)), toJsonValue(shown(got)), what);
  return differences.length === 0
    ? []
    : [`${what}: expected ${show(shown(expected))}, got ${show(shown(got))}`];
}

/** Members of an ensemble are loaded here; other rows were left by other cases. */
function compareMembers(expected: readonly IndexRow[], got: readonly IndexRow[]): string[] {
  const members = got.filter(({ state }) => state !== undefined);
  const same = expected.filter(({ name, version }) =>
    members.some((row) => row.name === name && row.version === version),
  );
  return compareRows("index of the others", same, members);
}

/**
 * The recorded server stops at the first problem of a configuration; the library reports all, one a line, each with
 * the model.
 */
function withFurtherFindings(expected: LoadCase, got: PlayedLoad): LoadCase {
  const [row] = expected.index ?? [];
  const reason = row?.reason;
  const told = got.index[0]?.reason;
  if (reason === undefined || !told?.startsWith(`${reason}\n`) || expected.load?.status !== 400)
    return expected;
  const further = told.slice(reason.length + 1).split("\n");
  if (
    !further.every(
      (line) => line.endsWith(`for ${expected.model}`) || line.startsWith(`model '${expected.model}'`),
    )
  ) {
    return expected;
  }
  const body = expected.load.body as { readonly error: string };
  return {
    ...expected,
    load: { ...expected.load, body: { error: body.error.replace(reason, told) } },
    index: [{ ...(row as IndexRow), reason: told }],
  };
}

/** The recorded server lists tensors found in a file in the order of their hashes. */
function sorted(body: JsonValue): JsonValue {
  if (!(body instanceof Map)) return body;
  const nameOf = (value: JsonValue) => (value instanceof Map ? String(value.get("name")) : "");
  return new Map(
    [...body].map(([key, value]) => {
      const isTensors = /^(in|out)puts?$/.test(key) && Array.isArray(value);
      return [key, isTensors ? [...value].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)) : value];
    }),
  );
}
