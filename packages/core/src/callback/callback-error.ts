import { TritonError } from "@tritonjs/protocol";
import { type Log, requestFields } from "../observe/log.js";

/*
 * Errors that a callback throws. Clients get their message alone. A caller in this process also learns which model
 * failed and where, because the error then names the model and has the stack of the callback. The log has the stack of
 * each kind of error once.
 */

/** The models whose callbacks threw these errors. Empty for an error that names its model. */
const modelsOfErrors = new WeakMap<TritonError, string>();

/** Remembers which model answered with an error, if the error comes from its callback and not from the library. */
export function rememberModel(error: TritonError, modelName: string): void {
  if (error.reason !== "INTERNAL" || modelsOfErrors.has(error)) return;
  if (error.message === textOf(error.cause)) modelsOfErrors.set(error, modelName);
}

/** Reasons of errors that a model's own code may have caused. */
const REASONS_OF_CODE: ReadonlySet<string> = new Set(["INTERNAL", "INVALID_OUTPUT", "WORKER_CRASHED"]);

/** Most kinds of errors of one model whose stacks are logged, because the memory for them is bounded. */
const MOST_KINDS = 64;

/** Longest message of an error in a line with its stack: the message may contain data of a request. */
const MOST_MESSAGE_CHARACTERS = 1000;

interface FailedRequest {
  readonly id: string;
  readonly trace: { readonly traceId: string | undefined } | undefined;
}

/**
 * Logs the stacks of errors that the code of one model version throws. Two errors are of the same kind if they have the
 * same name and were thrown at the same place. Each kind is logged once, as an error.
 */
export class UserErrors {
  readonly #kinds = new Set<string>();

  constructor(
    private readonly log: Pick<Log, "error">,
    private readonly model: string,
    private readonly version: string,
  ) {}

  /** Logs the stack of an error that answers a request, if the code of the model threw it. */
  inRequest(error: TritonError, request: FailedRequest): void {
    if (!REASONS_OF_CODE.has(error.reason)) return;
    const text = textOf(error.cause);
    if (text === undefined || !error.message.endsWith(text)) return;
    const { id, trace } = request;
    this.#report(error.cause, id === "" ? "in a request" : `in request '${id}'`, requestFields(id, trace));
  }

  /** Logs the stack of an error for which an instance could not be loaded, if the code of the model threw it. */
  whileLoading(error: unknown): void {
    this.#report(thrownBy(error), "while it loaded", {});
  }

  /** The stack of such an error, for the line that reports it; empty if another line has it, or it has none. */
  stackWhileLoading(error: unknown): string {
    const stack = this.#newStack(thrownBy(error));
    return stack === undefined ? "" : `\n${stack}`;
  }

  #report(thrown: unknown, when: string, about: object): void {
    const stack = this.#newStack(thrown);
    if (stack === undefined) return;
    const subject = { model: this.model, version: this.version, ...about };
    const where = `the code of model '${this.model}' version ${this.version}`;
    const message = textOf(thrown)!.slice(0, MOST_MESSAGE_CHARACTERS);
    this.log.error(`${where} failed ${when}: ${nameOf(thrown)}: ${message}\n${stack}`, subject);
    if (this.#kinds.size < MOST_KINDS) return;
    this.log.error(`${where} failed at ${MOST_KINDS} places: further stacks are not logged`, subject);
  }

  /** The frames of an error of a new kind, the program's own first; undefined without any, and for known kinds. */
  #newStack(thrown: unknown): string | undefined {
    if (this.#kinds.size === MOST_KINDS) return undefined;
    const frames = framesOf(thrown)?.split("\n") ?? [];
    const own = frames.filter(isOwnFrame);
    const kind = `${nameOf(thrown)} ${own[0]}`;
    if (own.length === 0 || this.#kinds.has(kind)) return undefined;
    this.#kinds.add(kind);
    return [...own, ...frames.filter((frame) => !isOwnFrame(frame))].join("\n");
  }
}

/** The error of the model's code behind one of the library; undefined for an error without another behind it. */
function thrownBy(error: unknown): unknown {
  if (TritonError.is(error) && error.cause === undefined) return undefined;
  let thrown = error;
  while (TritonError.is(thrown) && thrown.cause !== undefined) thrown = thrown.cause;
  return thrown;
}

function nameOf(thrown: unknown): string {
  try {
    return String((thrown as Error).name);
  } catch {
    return "Error";
  }
}

/** True for a line of a stack that names a file of the program, as opposed to Node and installed packages. */
function isOwnFrame(frame: string): boolean {
  return /:\d+:\d+\)?$/.test(frame) && !/\bnode:|[\\/]node_modules[\\/]/.test(frame);
}

/** The error for a caller in this process: that of a callback names its model, other errors stay as they are. */
export function namingModel(error: TritonError): TritonError {
  const modelName = modelsOfErrors.get(error);
  if (!modelName) return error;
  const { code, message, reason, cause } = error;
  const named = callbackError(`model '${modelName}': ${message}`, cause, { code, reason });
  modelsOfErrors.set(named, "");
  return named;
}

/** Makes an error with the stack of the callback that caused it. */
export function callbackError(
  message: string,
  cause: unknown,
  { code = "INTERNAL", reason = "INTERNAL" }: Partial<Pick<TritonError, "code" | "reason">> = {},
): TritonError {
  const error = new TritonError(code, message, { reason, cause });
  const frames = framesOf(cause);
  if (frames !== undefined) error.stack = `${error.name}: ${message}\n${frames}`;
  return error;
}

/** The lines of a stack that say where the error was thrown. Any value may have been thrown. */
function framesOf(thrown: unknown): string | undefined {
  try {
    const stack: unknown = (thrown as Error | undefined)?.stack;
    if (typeof stack !== "string") return undefined;
    const start = stack.search(/^ {4}at /m);
    return start < 0 ? undefined : stack.slice(start);
  } catch {
    return undefined;
  }
}

/** The message that `TritonError.from` takes from a thrown value. Undefined for a value without one. */
function textOf(thrown: unknown): string | undefined {
  if (thrown === undefined) return undefined;
  try {
    return thrown instanceof Error ? String(thrown.message || thrown.name) : String(thrown);
  } catch {
    return undefined;
  }
}

/** The text for a plain function that was meant for `batch` or `sample`. */
const QUESTION = "a plain function receives a list of requests; did you mean batch(fn) or sample(fn)?";

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
