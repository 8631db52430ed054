import { unbundledRequire } from "@tritonjs/core/internal/server";
import { errorFor, isReservedParameter, type Parameters, type ParameterValue } from "@tritonjs/protocol";
import { LRUCache } from "lru-cache";
import type * as Re2 from "re2js";

/** Prefix that makes patterns case-insensitive by default. tritonserver puts it before each pattern. */
const PREFIX = "(?i)";

/** Names of which it is known whether they match: clients send the same ones again and again. */
const KNOWN_NAMES = 256;

/** RE2's texts of faults, by those of re2js, which are Go's. */
const RE2_TEXTS: Readonly<Record<string, string>> = {
  "invalid named capture": "invalid named capture group",
  "invalid nested repetition operator": "bad repetition operator",
  "invalid or unsupported Perl syntax": "invalid perl operator",
  "invalid repeat count": "invalid repetition size",
  "missing argument to repetition operator": "no argument for repetition operator",
  "missing closing )": "missing )",
  "missing closing ]": "missing ]",
  "trailing backslash at end of expression": "trailing \\",
};

/** The headers that are forwarded to models, by name. */
export interface HeaderPattern {
  test(name: string): boolean;
}

/**
 * Reads the pattern of headers that are forwarded to models. A string has the syntax of RE2, as for tritonserver.
 * Strings and expressions are case-insensitive. The pattern may match anywhere in the name of a header.
 *
 * @returns undefined without a pattern, or with an empty one
 * @throws TritonError INVALID_ARG with RE2's reason for a string that is not a pattern.
 */
export function headerPattern(pattern: string | RegExp | undefined): HeaderPattern | undefined {
  if (pattern === undefined || pattern === "") return undefined;
  if (typeof pattern !== "string")
    return new RegExp(pattern.source, `${pattern.flags.replace(/[giy]/g, "")}i`);
  // Loaded here, because most programs forward no headers and it takes 10 ms.
  const { RE2JS } = unbundledRequire(import.meta.url)("re2js") as typeof Re2;
  try {
    const expression = RE2JS.compile(PREFIX + pattern);
    const names = new LRUCache<string, boolean>({
      max: KNOWN_NAMES,
      memoMethod: (name) => expression.test(name),
    });
    return { test: (name) => names.memo(name) };
  } catch (cause) {
    throw errorFor("INVALID_OPTION", `Error parsing '${PREFIX}${pattern}': ${faultOf(cause)}`, { cause });
  }
}

/** The fault of a pattern in the words of RE2. */
function faultOf(cause: unknown): string {
  const { error, input, message } = cause as Re2.RE2JSSyntaxException;
  if (error === undefined) return message;
  const lookBehind = /^\(\?<[=!]/.exec(input ?? "");
  if (lookBehind !== null) return `invalid perl operator: ${lookBehind[0]}`;
  const text = RE2_TEXTS[error] ?? error;
  return input ? `${text}: ${input}` : text;
}

/**
 * Adds the headers with matching names to the parameters for the model, as strings under the names that the client
 * sent.
 *
 * @throws TritonError INVALID_ARG for a matching header with a reserved name.
 */
export function forwardHeaders(
  headers: Iterable<readonly [name: string, value: string]>,
  pattern: HeaderPattern,
  parameters: Parameters,
): Parameters {
  const all: Record<string, ParameterValue> = Object.assign(Object.create(null), parameters);
  let count = 0;
  for (const [name, value] of headers) {
    if (!pattern.test(name)) continue;
    if (isReservedParameter(name)) {
      const text = `Header '${name}' is reserved for Triton usage and cannot be forwarded.`;
      throw errorFor("INVALID_PARAMETER", text);
    }
    all[name] = value;
    count++;
  }
  return count === 0 ? parameters : all;
}
