import { callbackError } from "./callback-error.js";

/** The text for a plain function that was meant for `batch` or `sample`. */
const QUESTION = "a plain function receives a list of requests; did you mean batch(fn) or sample(fn)?";

/** Error for a plain function that answers something other than a list. */
export function notAListText(modelName: string, answer: unknown): string {
  return `model '${modelName}': ${QUESTION} It answered ${describe(answer)}`;
}

/**
 * The error of a plain function that failed because it takes the list of requests for an object of tensors. Any other
 * error is returned as it is.
 *
 * @param inputs names of the model's inputs
 */
export function explainFailure(
  thrown: unknown,
  fn: unknown,
  modelName: string,
  inputs: readonly { readonly name: string }[],
): unknown {
  if (!(thrown instanceof TypeError) || !takesTensors(fn, inputs)) return thrown;
  const text = `model '${modelName}': ${QUESTION} It failed with: ${thrown.message}`;
  return callbackError(text, thrown, { reason: "INVALID_OUTPUT" });
}

/** The functions behind those of `bind`, whose source text is not readable. */
const originals = new WeakMap<object, object>();

/** Remembers the function that `bound` calls. */
export function rememberOriginal(bound: object, original: object): void {
  originals.set(bound, original);
}

/** True for a function whose source text reads inputs from its first parameter: `({ x }) =>`, `(a) => a.x`. */
function takesTensors(fn: unknown, inputs: readonly { readonly name: string }[]): boolean {
  const source = Function.prototype.toString.call(originals.get(fn as object) ?? fn);
  const parameter = /^[^({=]*\(\s*(\{|[\w$]+)|^(?:async\s+)?([\w$]+)\s*=>/.exec(source);
  const first = parameter?.[1] ?? parameter?.[2];
  if (first === undefined) return false;
  if (first === "{") return true;
  const names = ["inputs", ...inputs.map(({ name }) => name)].map(escaped).join("|");
  return new RegExp(
    `(?<![\\w$.])${escaped(first)}\\s*(\\?\\.|\\.|\\[\\s*["'\`])\\s*(${names})(?![\\w$])`,
  ).test(source);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function describe(answer: unknown): string {
  if (answer === null || answer === undefined) return String(answer);
  return typeof answer === "object" ? "an object" : `a ${typeof answer}`;
}
