import { decodeInferResponse, type EncodedInferRequest, encodeInferRequest } from "@tritonjs/client/internal";
import { Tensor } from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";
import type { TensorDataSet, TensorPayload, TestedModel } from "../data/data-set.js";
import type { LoadRequest, OutputReader } from "./carrier.js";
import { type HttpAnswers, headerOf } from "./http-carrier.js";
import { authorityOf, type Endpoint, type HttpTargetOptions } from "./target-options.js";
import {
  compressBytes,
  decompressBytes,
  type SharedPayload,
  type StampFormat,
  type StampPositions,
  sequencePlaces,
  shareRequests,
  type WireTemplates,
} from "./wire-template.js";

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

/** Prepares the requests of a data set: request line, headers and body. */
export function httpInferTemplates(
  data: TensorDataSet,
  model: TestedModel,
  target: HttpTargetOptions,
  endpoint: Endpoint,
  shared?: readonly SharedPayload[],
): WireTemplates {
  const { requestCompression } = target;
  const isStamped = requestCompression === undefined;
  if (!isStamped && model.isSequenceModel)
    throw invalidOption(
      `request compression: model '${model.name}' has sequences, whose requests are not compressed`,
    );
  const prepared = data.payloads.map((payload, i) => {
    const encoded = encode(payload, model, target, shared?.[i]);
    const body = isStamped ? encoded.body : compressBytes(encoded.body, requestCompression);
    const head = Buffer.from(headOf(model, target, endpoint, encoded, body.length), "latin1");
    const positions = isStamped ? positionsOf(payload, encoded, model, target, shared?.[i], head.length) : {};
    return { parts: [head, body], positions };
  });
  return shareRequests(prepared, JSON_STAMPS);
}

function encode(
  { inputs }: TensorPayload,
  model: TestedModel,
  { parameters, inputTensorFormat = "binary", outputTensorFormat = "binary" }: HttpTargetOptions,
  shared: SharedPayload | undefined,
): EncodedInferRequest {
  const binary = inputTensorFormat === "binary";
  const wantsBinary = outputTensorFormat === "binary";
  const values = inputs.map(({ name, datatype, shape, bytes }) => {
    const range = shared?.inputs.get(name);
    if (range !== undefined) return [name, { datatype, shape, sharedMemory: range }];
    return [name, Tensor.fromBytes(datatype, shape, bytes)];
  });
  const outputs =
    shared !== undefined
      ? [...shared.outputs].map(([name, range]) => ({ name, sharedMemory: range }))
      : binary === wantsBinary
        ? undefined
        : model.outputs.map(({ name }) => ({ name, binary: wantsBinary }));
  const sequence = model.isSequenceModel ? { id: PLACE_OF_ID } : undefined;
  return encodeInferRequest({ inputs: Object.fromEntries(values), outputs, parameters, sequence, binary });
}

function headOf(
  model: TestedModel,
  { headers = {}, requestCompression, responseCompression }: HttpTargetOptions,
  endpoint: Endpoint,
  { jsonLength }: EncodedInferRequest,
  byteSize: number,
): string {
  const version = model.version === "" ? "" : `/versions/${encodeURIComponent(model.version)}`;
  const path = `${endpoint.basePath}v2/models/${encodeURIComponent(model.name)}${version}/infer`;
  const own: Record<string, string | undefined> = {
    host: authorityOf(endpoint),
    "content-type": jsonLength === undefined ? "application/json" : "application/octet-stream",
    "content-length": String(byteSize),
    "inference-header-content-length": jsonLength === undefined ? undefined : String(jsonLength),
    "content-encoding": requestCompression,
    "accept-encoding": responseCompression,
  };
  return postHead(path, own, headers);
}

/** Request line and headers. Headers of the user replace others. */
export function postHead(
  path: string,
  own: Readonly<Record<string, string | undefined>>,
  given: Readonly<Record<string, string>>,
): string {
  const all = new Map<string, string>();
  for (const [name, value] of [...Object.entries(own), ...Object.entries(given)])
    if (value !== undefined) all.set(name.toLowerCase(), value);
  const lines = [...all].map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Finds the positions in the JSON, and the first tensor with fresh values behind it. */
function positionsOf(
  { inputs }: TensorPayload,
  { body, jsonLength }: EncodedInferRequest,
  model: TestedModel,
  { inputTensorFormat }: HttpTargetOptions,
  shared: SharedPayload | undefined,
  headLength: number,
): StampPositions {
  const json = Buffer.from(body.buffer, body.byteOffset, jsonLength ?? body.length);
  const sequence = sequencePlaces(model, (key) => headLength + json.indexOf(`"${key}":`) + key.length + 3);
  if (inputTensorFormat === "json" || shared !== undefined) return sequence;
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

  constructor(private readonly outputs: OutputReader) {}

  begin(request: LoadRequest, status: number, head: string, now: number): boolean {
    this.#status = status;
    if (status === OK) request.responded(now);
    if (status === OK && !this.outputs.wants(request)) return false;
    this.#head = head;
    this.#chunks = [];
    return true;
  }

  body(_request: LoadRequest, bytes: Buffer): void {
    this.#chunks.push(Buffer.from(bytes));
  }

  end(request: LoadRequest): void {
    if (this.#status === OK) {
      this.outputs.read(request, () => {
        const length = headerOf(this.#head, "inference-header-content-length");
        const headers = new Headers(length === "" ? {} : { "inference-header-content-length": length });
        return decodeInferResponse(this.#body(), headers).tensors;
      });
      return;
    }
    try {
      request.fail(statusFailure(this.#status, this.#body()));
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  #body(): Buffer {
    const body = Buffer.concat(this.#chunks);
    this.#chunks = [];
    const encoding = headerOf(this.#head, "content-encoding");
    return encoding === "gzip" || encoding === "deflate" ? decompressBytes(body, encoding) : body;
  }
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
