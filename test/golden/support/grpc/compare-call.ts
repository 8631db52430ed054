import { compareValues } from "../compare-values.js";
import { toJsonValue } from "../json-value.js";
import { levelNames } from "../level-names.js";
import type { UnaryResult } from "./client.js";
import { expandFills, type GrpcCase, type JsonMessage, type RecordedStatus } from "./grpc-case.js";

/** Codes whose texts are written by the client library. */
const CLIENT_CODES = ["DEADLINE_EXCEEDED", "CANCELLED"];

/** Fields in which the order of a hash map may show. */
type Flags = GrpcCase["flags"];

/** Lists how the end of a call differs from the recorded one. */
export function compareCall(
  recorded: Pick<GrpcCase, "response" | "status" | "flags">,
  got: UnaryResult,
): string[] {
  const expected = recorded.status as RecordedStatus;
  return [
    ...compareStatus(expected, got.status, recorded.flags),
    ...compareMessage(recorded.response ?? null, got.response, recorded.flags),
  ];
}

/** Lists how a status differs from the recorded one. */
export function compareStatus(expected: RecordedStatus, got: RecordedStatus, flags: Flags = []): string[] {
  const shown = `expected ${expected.code} "${expected.details}", got ${got.code} "${got.details}"`;
  if (expected.code !== got.code) return [`status: ${shown}`];
  if (fromClient(expected, got)) return [];
  const same = arrangeText(expected.details, flags) === arrangeText(got.details, flags);
  return same ? [] : [`details: ${shown}`];
}

function fromClient(expected: RecordedStatus, got: RecordedStatus): boolean {
  return (
    CLIENT_CODES.includes(expected.code) && /locally|on client|deadline/i.test(expected.details + got.details)
  );
}

/** Lists how a message differs from the recorded one. */
export function compareMessage(
  expected: JsonMessage | null,
  got: JsonMessage | null,
  flags: Flags = [],
): string[] {
  const wanted = arrange(expandFills(expected), flags);
  return compareValues(toJsonValue(wanted), toJsonValue(arrange(got, flags)));
}

/** Evens out effects of the order of a hash map. */
function arrange(message: unknown, flags: Flags = []): unknown {
  if (message === null || typeof message !== "object") return message;
  const arranged: Record<string, unknown> = { ...message };
  const text = arranged.error_message;
  if (typeof text === "string") arranged.error_message = arrangeText(text, flags);
  if (flags.includes("unordered") && Array.isArray(arranged.outputs)) sortOutputs(arranged);
  return arranged;
}

/** Outputs and their contents by name. */
function sortOutputs(message: Record<string, unknown>): void {
  const outputs = message.outputs as { readonly name: string }[];
  const contents = (message.raw_output_contents ?? []) as unknown[];
  const pairs = outputs.map((output, i) => [output, contents[i]] as const);
  pairs.sort(([a], [b]) => (a.name < b.name ? -1 : 1));
  message.outputs = pairs.map(([output]) => output);
  message.raw_output_contents = pairs.map(([, content]) => content);
}

/** `unordered` cases do not compare which of two inputs a text names and in which order it lists them. */
function arrangeText(text: string, flags: Flags = []): string {
  const levelled = levelNames(withoutTraceback(text));
  return flags.includes("unordered") ? levelled.replace(/(?<=\binput )'INPUT\d'/g, "'INPUT'") : levelled;
}

/** Errors of a Python model include the lines of its code. */
function withoutTraceback(text: string): string {
  return text.replace(/\n\nAt:\n[\s\S]*?\n?(?=;\n|$)/, "");
}
