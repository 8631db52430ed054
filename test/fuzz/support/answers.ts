import { expectThat } from "../engine/target.js";

/** Statuses of the library over HTTP. */
const STATUSES: ReadonlySet<number> = new Set([
  ...[200, 302, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 431, 499, 500, 501, 503],
]);

/** An answer over HTTP, read in full. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/**
 * Expects an answer that the library may give: a status that it has, the text of an error that a person can read, and
 * JSON that parses.
 */
export function expectGoodAnswer({ status, contentType, body }: HttpAnswer): void {
  expectThat(STATUSES.has(status), () => `unexpected status ${status}: ${preview(body)}`);
  if (status === 499) return;
  if (contentType.startsWith("text/event-stream")) {
    for (const event of body.toString("utf8").split("\n\n")) {
      if (event === "" || event === "data: [DONE]") continue;
      const line = event.split("\n").find((one) => one.startsWith("data: "));
      expectThat(line !== undefined, () => `expected events, got ${preview(body)}`);
      parse(Buffer.from(line!.slice("data: ".length)));
    }
    return;
  }
  if (status >= 400) {
    const { error } = parse(body) as { error?: unknown };
    const text =
      typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    expectThat(typeof text === "string" && text !== "", () => `expected an error, got ${preview(body)}`);
    expectNoException(text as string);
    return;
  }
  if (contentType.startsWith("application/json") && body.length > 0) parse(body);
}

/** Texts of exceptions that V8 and Node throw: such an error was not foreseen. */
const EXCEPTIONS =
  /^internal error$|Cannot (?:read|set|convert|mix|destructure)|is not (?:a function|iterable|a constructor|defined)|Invalid (?:array|typed array|string) length|Maximum call stack|is not extensible|Reduce of empty|Array buffer allocation|must be (?:of type|an instance|one of)|argument .* (?:must|out of)|outside (?:the bounds|buffer)|undefined \(|BigInt/;

/** Expects a text that does not come from an exception of the runtime. */
export function expectNoException(text: string): void {
  expectThat(!EXCEPTIONS.test(text), () => `the text of an exception: ${text}`);
}

function parse(body: Buffer): unknown {
  const text = body.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    // As in Triton, numbers that are not finite have names.
    const plain = text.replace(/(?<=[[,:])-?(?:NaN|Infinity)(?=[\],}])/g, "null");
    try {
      return JSON.parse(plain);
    } catch (error) {
      throw new Error(`${(error as Error).message}: ${preview(body)}`);
    }
  }
}

const preview = (body: Buffer): string => JSON.stringify(body.toString("latin1").slice(0, 200));
