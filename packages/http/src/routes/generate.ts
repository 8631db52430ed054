import {
  type DataType,
  errorFor,
  fromConfigDataType,
  httpStatusOf,
  type ParameterValue,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import {
  Exchange,
  type InferenceResponse,
  type ReadyModel,
  type RequestShare,
  type ResponseSink,
} from "@tritonjs/server";
import { readCallerHeaders } from "@tritonjs/server/internal";
import { finish, loopTurns, readJson } from "../exchange/loop-turns.js";
import { firstHeader } from "../exchange/request.js";
import { BodyStream, type V2Response } from "../exchange/response.js";
import { DecodedRequest, readParameter } from "../infer/infer-request.js";
import { isLongTensor, tensorDataSteps, writeTensorData } from "../infer/infer-response.js";
import { readElements, readStrings } from "../infer/json-tensor.js";
import {
  asText,
  find,
  isArray,
  type JsonArray,
  JsonObject,
  type JsonValue,
  members,
} from "../json/json-value.js";
import { ByteWriter, toJsonBytes, writeJson } from "../json/write-json.js";
import { checkCount, MAX_JSON_PARAMETERS, maxNumbers } from "../limits.js";
import { reportingLoad, turnAtFullQueue } from "./infer.js";
import { type HttpExchange, modelRoutePath, postRoute, type Route, traceReceived } from "./route.js";

const NOT_ONE =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various " +
  "number of responses";

const EVENT_START = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");

/** Inference for text: one flat object in; one flat object, or a stream of server-sent events, out. */
export const generateRoutes: readonly Route[] = [
  postRoute(modelRoutePath("generate"), "inference", reportingLoad(generate)),
  postRoute(modelRoutePath("generate_stream"), "inference", reportingLoad(generateStream)),
];

interface Part {
  readonly status: number;
  readonly json: Buffer;
}

const NO_PART: Part = { status: 200, json: Buffer.alloc(0) };

async function generate(exchange: HttpExchange): Promise<V2Response> {
  const outcomes = new Outcomes();
  await start(exchange, () => outcomes);
  const [first, second] = await outcomes.all;
  exchange.errorType = "text/plain";
  const part = first === undefined ? undefined : await inTurns(exchange, first);
  const json = part !== undefined && second === undefined ? part.json : toJsonBytes({ error: NOT_ONE });
  const headers = { "content-type": "application/json" };
  return { status: part?.status ?? 200, headers, body: inChunks(json) };
}

class Outcomes implements ResponseSink {
  readonly all: Promise<readonly (InferenceResponse | TritonError)[]>;
  refuse!: (error: unknown) => void;
  readonly #outcomes: (InferenceResponse | TritonError)[] = [];
  #end!: (outcomes: readonly (InferenceResponse | TritonError)[]) => void;

  constructor() {
    this.all = new Promise((resolve, reject) => {
      this.#end = resolve;
      this.refuse = reject;
    });
  }

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (outcome !== undefined) this.#outcomes.push(outcome);
    if (final) this.#end(this.#outcomes);
  }
}

async function generateStream(exchange: HttpExchange): Promise<V2Response> {
  const events = await start(
    exchange,
    // The exchange ends with the first event, and the request continues.
    (call) => new EventStream(call, exchange.memory.split(exchange.memory.bytes)),
  );
  return events.answer;
}

/** Writes responses as events. The first one decides the status. A later error can only be reported in its own event. */
class EventStream implements ResponseSink {
  readonly answer: Promise<V2Response>;
  readonly #events: BodyStream;
  #begin!: (answer: V2Response) => void;
  #reject!: (error: unknown) => void;

  /** @param memory counts the request until its last response */
  constructor(
    private readonly call: Exchange,
    private readonly memory: RequestShare,
  ) {
    this.#events = new BodyStream({ onDrain: () => call.resume(), onCancel: () => call.cancel() });
    this.answer = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#reject = reject;
    });
  }

  respond(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    const { status, json } = outcome === undefined ? NO_PART : toPart(outcome);
    if (outcome !== undefined || final) {
      const headers = { "content-type": "text/event-stream; charset=utf-8" };
      this.#begin({ status, headers, body: this.#events });
    }
    if (outcome !== undefined) {
      const ready = this.#events.write(Buffer.concat([EVENT_START, json, EVENT_END]));
      if (!ready && !final) this.call.pause();
    }
    if (!final) return;
    this.memory.release();
    this.#events.end();
  }

  refuse(error: unknown): void {
    this.memory.release();
    this.#reject(error);
  }
}

/** Sends one body in chunks, as Triton does. */
async function* inChunks(json: Uint8Array): AsyncGenerator<Uint8Array> {
  yield json;
}

/**
 * Reads a request, decodes it for the version that is in service then, and sends it without another wait.
 *
 * @returns the sink that `open` has made for it
 */
async function start<S extends ResponseSink>(
  exchange: HttpExchange,
  open: (call: Exchange) => S,
): Promise<S> {
  const { service, request, model, version, memory, maxInputSize } = exchange;
  const call = new Exchange(service, request, service.model(model, version), version);
  if ((firstHeader(request, "content-encoding") || "identity") !== "identity") {
    throw errorFor("INVALID_BODY", "Unsupported content-encoding, only 'identity' is supported.");
  }
  const turn = turnAtFullQueue(exchange, call);
  if (turn !== undefined) await turn;
  const since = service.tracing?.now();
  const body = await request.readBody(memory, maxInputSize);
  if (since !== undefined) traceReceived(exchange, since);
  const use = (json: JsonValue): S => {
    const model = call.current();
    const decoded = decodeGenerateJson(model, json);
    call.trace = exchange.trace;
    decoded.trace = exchange.trace?.request;
    readCallerHeaders(decoded, model.reads, request, firstHeader);
    const sink = open(call);
    call.send(decoded, sink);
    return sink;
  };
  return readJson(request, body, use, maxNumbers(maxInputSize));
}

/** Encodes the only answer; a long one in turns of the event loop. */
async function inTurns({ request }: HttpExchange, outcome: InferenceResponse | TritonError): Promise<Part> {
  if (TritonError.is(outcome) || ![...outcome.outputs.values()].some(isLongTensor)) return toPart(outcome);
  try {
    return {
      status: 200,
      json: await loopTurns.write(request, () => generateResponseSteps(outcome)),
    };
  } catch (thrown) {
    if (!TritonError.is(thrown)) throw thrown;
    return toPart(thrown);
  }
}

function toPart(outcome: InferenceResponse | TritonError): Part {
  try {
    if (TritonError.is(outcome)) throw outcome;
    return { status: 200, json: finish(generateResponseSteps(outcome)) };
  } catch (thrown) {
    const { code, reason, message } = TritonError.from(thrown);
    return { status: httpStatusOf(code, reason), json: toJsonBytes({ error: message }) };
  }
}

const NESTED = "parameters";

/** An input as generate requests need it: its shape includes the batch axis. */
interface GenerateInput {
  readonly datatype: DataType;
  readonly shape: readonly number[];
}

/**
 * Decodes a generate request: one object. Members with the name of an input become inputs, all others parameters. The
 * members of `parameters` count as if they were at the top.
 *
 * @throws TritonError with Triton's code and text for the first fault.
 */
export function decodeGenerateJson(model: ReadyModel, json: JsonValue): DecodedRequest {
  const idJson = find(json, "id");
  const request = new DecodedRequest(model.name);
  if (idJson !== undefined) request.id = asText(idJson, "Unable to parse 'id'");
  const reader = new GenerateReader(model, request.id);
  reader.read(json);
  request.inputs = reader.inputs;
  request.parameters = reader.parameters;
  return request;
}

class GenerateReader {
  readonly inputs = new Map<string, Tensor>();
  readonly parameters: Record<string, ParameterValue> = Object.create(null);
  readonly #known: ReadonlyMap<string, GenerateInput>;

  constructor(
    model: ReadyModel,
    private readonly id: string,
  ) {
    const batch = model.config.maxBatchSize > 0 ? [-1] : [];
    this.#known = new Map(
      model.config.input.map(({ name, dataType, dims }) => [
        name,
        { datatype: fromConfigDataType(dataType)!, shape: [...batch, ...dims] },
      ]),
    );
  }

  read(object: JsonValue): void {
    const found = members(object);
    // A name that is written twice is read twice: the second time, the input exists already.
    checkCount("parameters", found.size, MAX_JSON_PARAMETERS + this.#known.size);
    for (const name of found.written()) {
      const value = found.get(name)!;
      if (name === NESTED) this.#readNested(value);
      else this.#readMember(name, value);
    }
  }

  #readNested(value: JsonValue): void {
    if (this.#known.has(NESTED)) {
      throw invalid(`Keyword '${NESTED}' for nested schema also given as input tensor name`);
    }
    if (!(value instanceof JsonObject)) {
      const fault = "attempt to access JSON non-object as object";
      throw errorFor("MALFORMED_JSON", `Expected JSON object for keyword: '${NESTED}': ${fault}`);
    }
    checkCount("parameters", value.size, MAX_JSON_PARAMETERS + this.#known.size);
    try {
      for (const name of value.written()) this.#readMember(name, value.get(name)!);
    } catch (thrown) {
      const { code, message, reason } = TritonError.from(thrown);
      throw new TritonError(code, `Converting keyword: '${NESTED}': ${message}`, { reason });
    }
  }

  #readMember(name: string, value: JsonValue): void {
    const input = this.#known.get(name);
    if (input === undefined) {
      if (name !== "id") this.parameters[name] = readParameter(name, value);
      return;
    }
    const tensor = readInput(name, input, value);
    if (this.inputs.has(name)) {
      throw invalid(`[request id: ${this.id || "<id_unknown>"}] input '${name}' already exists in request`);
    }
    this.inputs.set(name, tensor);
  }
}

function readInput(name: string, { datatype, shape }: GenerateInput, value: JsonValue): Tensor {
  const data: JsonArray = isArray(value) ? value : [value];
  const count = data.length;
  if (datatype === "BYTES") return readStrings([count], data).reshaped(fitShape(name, shape, count));
  return readElements(name, datatype, fitShape(name, shape, count), count, data);
}

/**
 * The model's shape for `count` elements: the innermost open dimension takes the elements that the fixed ones leave.
 */
function fitShape(name: string, shape: readonly number[], count: number): number[] {
  const fixed = shape.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const open = shape.lastIndexOf(-1);
  if (count % fixed !== 0 || (open < 0 && count !== fixed)) {
    throw invalid(`The schema can not convert input '${name}' to tensor with proper shape`);
  }
  return shape.map((dim, axis) => (dim !== -1 ? dim : axis === open ? count / fixed : 1));
}

function invalid(message: string): TritonError {
  return errorFor("INVALID_INPUT", message);
}

/**
 * Encodes the answer to a generate request: one object with id, model, parameters and outputs side by side, sorted by
 * name. An output of one element is that element, others are flat arrays. It pauses within large tensors.
 *
 * @throws TritonError INVALID_ARG for an output without a JSON form.
 */
function* generateResponseSteps(response: InferenceResponse): Generator<void, Buffer> {
  const members = new Map<string, ParameterValue | Tensor>(response.outputs);
  for (const [name, value] of Object.entries(response.parameters)) members.set(name, value);
  members.set("model_name", response.modelName).set("model_version", response.modelVersion);
  if (response.id !== "") members.set("id", response.id);
  const writer = new ByteWriter();
  let separator = "{";
  for (const name of [...members.keys()].sort()) {
    writer.ascii(separator).string(name).ascii(":");
    const member = members.get(name)!;
    if (typeof member === "object") yield* elementSteps(writer, member);
    else writeJson(writer, member);
    separator = ",";
  }
  return writer.ascii("}").bytes();
}

function* elementSteps(writer: ByteWriter, tensor: Tensor): Generator<void> {
  if (isLongTensor(tensor)) yield* tensorDataSteps(writer, tensor);
  else writeTensorData(writer, tensor, tensor.shape.reduce((count, dim) => count * dim, 1) === 1);
}
