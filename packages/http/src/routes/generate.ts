import type { InferenceResponse, PinnedModel, RequestHandle, RequestShare } from "@tritonjs/core/frontend";
import { httpStatusOf, TritonError } from "@tritonjs/protocol";
import type { DecodedRequest } from "../decode/decoded-request.js";
import { decodeGenerateJson } from "../decode/generate-request.js";
import { encodeGenerateResponse, generateResponseSteps } from "../encode/generate-response.js";
import { isLongTensor } from "../encode/tensor-data.js";
import { BodyStream } from "../exchange/body-stream.js";
import { loopTurns } from "../exchange/loop-turns.js";
import { readJson } from "../exchange/read-json.js";
import { firstHeader } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";
import type { JsonValue } from "../json/json-value.js";
import { toJsonBytes } from "../json/write-json.js";
import { maxNumbers } from "../limits.js";
import { traceReceived } from "./http-trace.js";
import { reportingLoad } from "./report-load.js";
import { type Exchange, modelRoutePath, type Route } from "./route.js";
import { startOrRefuse, turnAtFullQueue } from "./run-inference.js";

const NOT_ONE =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various " +
  "number of responses";

const EVENT_START = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");

/** Inference for text: one flat object in; one flat object, or a stream of server-sent events, out. */
export const generateRoutes: readonly Route[] = [
  {
    path: modelRoutePath("generate"),
    methods: ["POST"],
    group: "inference",
    errorType: "application/json",
    handle: reportingLoad(generate),
  },
  {
    path: modelRoutePath("generate_stream"),
    methods: ["POST"],
    group: "inference",
    errorType: "application/json",
    handle: reportingLoad(generateStream),
  },
];

/** Starts a request for the model version for which it was decoded. */
type Start<T> = (model: PinnedModel, decoded: DecodedRequest) => T;

/** A response or an error of the model, as JSON. */
interface Part {
  readonly status: number;
  readonly json: Buffer;
}

async function generate(exchange: Exchange): Promise<V2Response> {
  const outcomes: (InferenceResponse | TritonError)[] = [];
  const { answered } = await decode(exchange, (model, decoded) => ({
    answered: new Promise<void>((resolve, reject) => {
      startOrRefuse(exchange, model, decoded, reject, (outcome, final) => {
        if (outcome !== undefined) outcomes.push(outcome);
        if (final) resolve();
      });
    }),
  }));
  await answered;
  const [first] = outcomes;
  const part = first === undefined ? undefined : await inTurns(exchange, first);
  const json = outcomes.length === 1 ? part!.json : toJsonBytes({ error: NOT_ONE });
  const headers = { "content-type": "application/json" };
  return { status: part?.status ?? 200, headers, body: inChunks(json) };
}

/** The first event decides the status. A later error can only be reported in its own event. */
async function generateStream(exchange: Exchange): Promise<V2Response> {
  const { memory, events } = await decode(exchange, (model, decoded) => {
    // The exchange ends with the first event, and the request continues.
    const share = exchange.memory.split(exchange.memory.bytes);
    return { memory: share, events: streamEvents(exchange, model, decoded, share) };
  });
  try {
    return await events;
  } catch (refusal) {
    memory.release();
    throw refusal;
  }
}

function streamEvents(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
  memory: RequestShare,
): Promise<V2Response> {
  return new Promise((resolve, reject) => {
    let request: RequestHandle | undefined;
    const events = new BodyStream({
      onDrain: () => request?.resume(),
      onCancel: () => request?.cancel(),
    });
    const headers = { "content-type": "text/event-stream; charset=utf-8" };
    startOrRefuse(exchange, model, decoded, reject, (outcome, final, running) => {
      request = running;
      if (outcome !== undefined) {
        const { status, json } = toPart(outcome);
        resolve({ status, headers, body: events });
        const ready = events.write(Buffer.concat([EVENT_START, json, EVENT_END]));
        if (!ready && !final) running.pause();
      }
      if (!final) return;
      memory.release();
      resolve({ status: 200, headers, body: events });
      events.end();
    });
  });
}

/** Sends one body in chunks, as Triton does. */
async function* inChunks(json: Uint8Array): AsyncGenerator<Uint8Array> {
  yield json;
}

/** Decodes a request for the version that is in service then, and starts it without another wait. */
async function decode<T>(exchange: Exchange, start: Start<T>): Promise<T> {
  const { service, request, memory, maxInputSize } = exchange;
  const found = service.model(exchange.model, exchange.version);
  if ((firstHeader(request, "content-encoding") || "identity") !== "identity") {
    throw new TritonError("INVALID_ARG", "Unsupported content-encoding, only 'identity' is supported.", {
      reason: "INVALID_BODY",
    });
  }
  const turn = turnAtFullQueue(exchange, found);
  if (turn !== undefined) await turn;
  const since = service.tracing?.now();
  const body = await request.readBody(memory, maxInputSize);
  traceReceived(exchange, since);
  const use = (json: JsonValue): T => {
    const model = found.inService();
    return start(model, decodeGenerateJson(model, json));
  };
  return readJson(request, body, use, maxNumbers(maxInputSize));
}

/** Encodes the only answer; a long one in turns of the event loop. */
async function inTurns({ request }: Exchange, outcome: InferenceResponse | TritonError): Promise<Part> {
  if (TritonError.is(outcome) || ![...outcome.outputs.values()].some(isLongTensor)) return toPart(outcome);
  try {
    return {
      status: 200,
      json: await loopTurns.writeSteps(request, () => generateResponseSteps(outcome)),
    };
  } catch (thrown) {
    if (!TritonError.is(thrown)) throw thrown;
    return toPart(thrown);
  }
}

function toPart(outcome: InferenceResponse | TritonError): Part {
  try {
    if (TritonError.is(outcome)) throw outcome;
    return { status: 200, json: encodeGenerateResponse(outcome) };
  } catch (thrown) {
    const { code, reason, message } = TritonError.from(thrown);
    return { status: httpStatusOf(code, reason), json: toJsonBytes({ error: message }) };
  }
}
