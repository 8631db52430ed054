import {
  type Compression,
  decodeInferResponse,
  type EncodedInferRequest,
  encodeInferRequest,
} from "@tritonjs/client/http";
import { type ParameterValue, Tensor } from "@tritonjs/protocol";
import type { TensorDataSet, TensorPayload, TestedModel } from "../data/data-set.js";
import { invalidOption } from "../tool-errors.js";
import {
  type ExpectedOutputs,
  type LoadRequest,
  outputFault,
  outputsJson,
  type ResponseHandling,
} from "./carrier.js";
import { type HttpAnswers, headerOf } from "./http-carrier.js";
import {
  compressBytes,
  decompressBytes,
  type PreparedRequest,
  type SharedPayload,
  type StampFormat,
  type StampPlaces,
  shareRequests,
  type WireTemplates,
} from "./wire-template.js";

interface HttpInferRequests {
  readonly model: TestedModel;
  /** Path of the server's root: `/` or the prefix of a proxy. */
  readonly basePath: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly inputFormat: "binary" | "json";
  readonly outputFormat: "binary" | "json";
  readonly requestCompression?: Compression;
  readonly responseCompression?: Compression;
  /** Ranges of shared memory in place of tensors, by payload. */
  readonly shared?: readonly SharedPayload[];
}

/** An id of 16 digits, whose place every id fits into. */
const PLACE_OF_ID = 1_111_111_111_111_111n;
const ID_DIGITS = 16;

/** JSON numbers have no leading zeros, so blanks precede the digits. */
export const JSON_STAMPS: StampFormat = {
  idBytes: ID_DIGITS,
  flagBytes: 5,
  writeSequenceId(into, at, id) {
    into.write(String(id).padStart(ID_DIGITS, " "), at, ID_DIGITS, "latin1");
  },
  writeFlag(into, at, value) {
    into.write(value ? "true " : "false", at, 5, "latin1");
  },
};

/**
 * Prepares the requests of a data set: request line, headers and body.
 *
 * @throws TritonError INVALID_ARG for tensors or parameters that cannot be sent.
 */
export function httpInferTemplates(data: TensorDataSet, requests: HttpInferRequests): WireTemplates {
  const prepared = data.payloads.map((payload, i) => prepare(payload, requests, requests.shared?.[i]));
  return shareRequests(prepared, JSON_STAMPS);
}

function prepare(
  payload: TensorPayload,
  requests: HttpInferRequests,
  shared: SharedPayload | undefined,
): PreparedRequest {
  const { model, requestCompression } = requests;
  const encoded = encode(payload, requests, shared);
  const isStamped = requestCompression === undefined;
  if (!isStamped && model.isSequenceModel)
    throw invalidOption(
      `request compression: model '${model.name}' has sequences, whose requests are not compressed`,
    );
  const body = isStamped ? encoded.body : compressBytes(encoded.body, requestCompression);
  const head = Buffer.from(headOf(requests, encoded, body.length), "latin1");
  const places = isStamped ? placesOf(payload, encoded, requests, shared, head.length) : {};
  return { parts: [head, body], places };
}

function encode(
  { inputs }: TensorPayload,
  { model, parameters, inputFormat, outputFormat }: HttpInferRequests,
  shared: SharedPayload | undefined,
): EncodedInferRequest {
  const isBinary = inputFormat === "binary";
  const values = inputs.map(({ name, datatype, shape, bytes }) => {
    const range = shared?.inputs.get(name);
    if (range !== undefined) return [name, { datatype, shape, sharedMemory: range }];
    return [name, Tensor.fromBytes(datatype, shape, bytes)];
  });
  const wantsBinary = outputFormat === "binary";
  const outputs =
    shared !== undefined
      ? [...shared.outputs].map(([name, range]) => ({ name, sharedMemory: range }))
      : isBinary === wantsBinary
        ? undefined
        : model.outputs.map(({ name }) => ({ name, binary: wantsBinary }));
  const sequence = model.isSequenceModel ? { id: PLACE_OF_ID } : undefined;
  return encodeInferRequest({
    inputs: Object.fromEntries(values),
    outputs,
    parameters,
    sequence,
    binary: isBinary,
  });
}

function headOf(
  { model, basePath, host, headers, requestCompression, responseCompression }: HttpInferRequests,
  { jsonLength }: EncodedInferRequest,
  byteSize: number,
): string {
  const version = model.version === "" ? "" : `/versions/${encodeURIComponent(model.version)}`;
  const path = `${basePath}v2/models/${encodeURIComponent(model.name)}${version}/infer`;
  const own: Record<string, string | undefined> = {
    host,
    "content-type": jsonLength === undefined ? "application/json" : "application/octet-stream",
    "content-length": String(byteSize),
    "inference-header-content-length": jsonLength === undefined ? undefined : String(jsonLength),
    "content-encoding": requestCompression,
    "accept-encoding": responseCompression,
  };
  return requestHead("POST", path, own, headers);
}

/** Request line and headers. Headers of the user replace others. */
export function requestHead(
  method: string,
  path: string,
  own: Readonly<Record<string, string | undefined>>,
  given: Readonly<Record<string, string>>,
): string {
  const all = new Map<string, string>();
  for (const [name, value] of [...Object.entries(own), ...Object.entries(given)])
    if (value !== undefined) all.set(name.toLowerCase(), value);
  const lines = [...all].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Finds the places in the JSON, and the first tensor with fresh values behind it. */
function placesOf(
  { inputs }: TensorPayload,
  { body, jsonLength }: EncodedInferRequest,
  { model, inputFormat }: HttpInferRequests,
  shared: SharedPayload | undefined,
  headLength: number,
): StampPlaces {
  const json = Buffer.from(body.buffer, body.byteOffset, jsonLength ?? body.length);
  const after = (key: string) => headLength + json.indexOf(key) + key.length;
  const sequence = model.isSequenceModel
    ? {
        sequenceId: after('"sequence_id":'),
        sequenceStart: after('"sequence_start":'),
        sequenceEnd: after('"sequence_end":'),
      }
    : {};
  if (inputFormat === "json" || shared !== undefined) return sequence;
  let at = headLength + json.length;
  for (const { bytes, datatype, fresh } of inputs) {
    if (fresh !== undefined)
      return { ...sequence, fresh: { at: at + fresh.offset, byteSize: fresh.byteSize, datatype } };
    at += bytes.length;
  }
  return sequence;
}

const OK = 200;

/** Reads responses of `infer`. Bodies of successes are skipped unless outputs are compared or kept. */
export class InferAnswers implements HttpAnswers {
  #chunks: Buffer[] = [];
  #status = OK;
  #head = "";

  constructor(
    private readonly expected: ExpectedOutputs | undefined,
    private readonly handling: ResponseHandling,
  ) {}

  begin(request: LoadRequest, status: number, head: string, now: number): boolean {
    this.#status = status;
    if (status === OK) request.responded(now);
    const isWanted =
      status !== OK || this.handling.keepOutputs || this.expected?.[request.payload] !== undefined;
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
    const expected = this.expected?.[request.payload];
    if (this.#status === OK && expected === undefined && !this.handling.keepOutputs) return;
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
      if (this.handling.keepOutputs) request.responseOutputs?.push(outputsJson(tensors));
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
