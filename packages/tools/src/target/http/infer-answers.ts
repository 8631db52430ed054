import { type Compression, decodeInferResponse } from "@tritonjs/client/http";
import type { ResponseHandling } from "../carrier.js";
import { decompressBytes } from "../compression.js";
import { type ExpectedOutputs, outputFault } from "../expected-outputs.js";
import type { LoadRequest } from "../load-request.js";
import { outputsJson } from "../outputs-json.js";
import type { HttpAnswers } from "./http-answers.js";
import { headerOf } from "./response-reader.js";

const OK = 200;

/** Reads responses of `infer`. Bodies of successes are skipped unless outputs are compared or kept. */
export class InferAnswers implements HttpAnswers {
  readonly #expected: ExpectedOutputs | undefined;
  readonly #handling: ResponseHandling;
  #chunks: Buffer[] = [];
  #status = OK;
  #head = "";

  constructor(expected: ExpectedOutputs | undefined, handling: ResponseHandling) {
    this.#expected = expected;
    this.#handling = handling;
  }

  begin(request: LoadRequest, status: number, head: string, now: number): boolean {
    this.#status = status;
    if (status === OK) request.responded(now);
    const isWanted =
      status !== OK || this.#handling.keepOutputs || this.#expected?.[request.payload] !== undefined;
    if (isWanted) {
      this.#head = head;
      this.#chunks = [];
    }
    return isWanted;
  }

  body(_request: LoadRequest, bytes: Buffer): void {
    this.#chunks.push(Buffer.from(bytes));
  }

  end(request: LoadRequest): void {
    const expected = this.#expected?.[request.payload];
    if (this.#status === OK && expected === undefined && !this.#handling.keepOutputs) return;
    const chunks = this.#chunks;
    this.#chunks = [];
    try {
      const body = unpacked(Buffer.concat(chunks), headerOf(this.#head, "content-encoding"));
      if (this.#status !== OK) {
        request.fail(statusFailure(this.#status, body));
        return;
      }
      const length = headerOf(this.#head, "inference-header-content-length");
      const headers = new Headers(length === "" ? {} : { "inference-header-content-length": length });
      const { tensors } = decodeInferResponse(body, headers);
      if (this.#handling.keepOutputs) request.responseOutputs?.push(outputsJson(tensors));
      const fault = expected && outputFault(expected, tensors);
      if (fault !== undefined) request.fail(fault);
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }
}

function unpacked(body: Buffer, encoding: string): Buffer {
  return encoding === "gzip" || encoding === "deflate"
    ? decompressBytes(body, encoding as Compression)
    : body;
}

const LONGEST_TEXT = 500;

/** Text of an answer with an error status: that of the server's JSON, with the status. */
export function statusFailure(status: number, body: Buffer): string {
  const text = body.toString("utf8", 0, 64 * 1024);
  let message = text.trim();
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    if (typeof error === "string") message = error;
    else if (typeof error === "object" && error !== null && "message" in error)
      message = String(error.message);
  } catch {
    // Answers of proxies are not JSON.
  }
  return `[${status}] ${message.length > LONGEST_TEXT ? `${message.slice(0, LONGEST_TEXT)}…` : message}`;
}
