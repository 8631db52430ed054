import { PassThrough, Readable } from "node:stream";
import { type InferenceResponse, TritonError } from "@tritonjs/core";
import { decodeGenerateRequest } from "../decode/generate-request.js";
import { readBody } from "../decode/read-body.js";
import { encodeGenerateResponse } from "../encode/generate-response.js";
import { toJsonBytes } from "../json/write-json.js";
import { statusFromCode } from "../status-from-code.js";
import { firstHeader } from "./first-header.js";
import { type Exchange, modelPath, type Route } from "./route.js";
import { type RequestBody, start } from "./run-inference.js";

const NOT_ONE =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various " +
  "number of responses";

const EVENT_START = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");

/** Inference for text: one flat object in, one out, or a stream of server-sent events. */
export const generateRoutes: readonly Route[] = [
  {
    path: modelPath("generate"),
    methods: ["POST"],
    group: "inference",
    errorType: "application/json",
    handle: generate,
  },
  {
    path: modelPath("generate_stream"),
    methods: ["POST"],
    group: "inference",
    errorType: "application/json",
    handle: generateStream,
  },
];

/** A response or an error of the model, as JSON. */
interface Part {
  readonly status: number;
  readonly json: Buffer;
}

async function generate(exchange: Exchange): Promise<void> {
  const body = await decode(exchange);
  const parts: Part[] = [];
  await new Promise<void>((resolve) => {
    start(exchange, body, (outcome, final) => {
      if (outcome !== undefined) parts.push(toPart(outcome));
      if (final) resolve();
    });
  });
  const json = parts.length === 1 ? parts[0]!.json : toJsonBytes({ error: NOT_ONE });
  sendStream(
    exchange,
    parts[0]?.status ?? 200,
    "application/json",
    Readable.from([json], { objectMode: false }),
  );
}

/** The status is that of the first event; what comes later can only say so in its own event. */
async function generateStream(exchange: Exchange): Promise<void> {
  const body = await decode(exchange);
  const events = new PassThrough();
  // A client that leaves destroys the stream. The request is cancelled then, and nobody reads what is still written.
  events.on("error", () => {});
  let open = false;
  const begin = (status: number): void => {
    if (open) return;
    open = true;
    sendStream(exchange, status, "text/event-stream; charset=utf-8", events);
  };
  await new Promise<void>((resolve) => {
    start(exchange, body, (outcome, final, request) => {
      if (outcome !== undefined) {
        const { status, json } = toPart(outcome);
        begin(status);
        const ready = events.write(Buffer.concat([EVENT_START, json, EVENT_END]));
        if (!ready && !final) {
          request.pause();
          events.once("drain", () => request.resume());
        }
      }
      if (!final) return;
      begin(200);
      events.end();
      resolve();
    });
  });
}

/** Sends in chunks, also an empty body. HTTP/1.0 has no chunks: its body ends with the connection. */
function sendStream({ request, reply }: Exchange, status: number, contentType: string, body: Readable): void {
  if (request.raw.httpVersion !== "1.0") reply.header("transfer-encoding", "chunked");
  reply.code(status).header("content-type", contentType).send(body);
}

async function decode(exchange: Exchange): Promise<RequestBody> {
  const { service, request, maxInputSize } = exchange;
  const model = service.model(exchange.model, exchange.version);
  if ((firstHeader(request, "content-encoding") || "identity") !== "identity") {
    throw new TritonError("INVALID_ARG", "Unsupported content-encoding, only 'identity' is supported.");
  }
  return decodeGenerateRequest(model, await readBody(request.raw, maxInputSize));
}

function toPart(outcome: InferenceResponse | TritonError): Part {
  try {
    if (TritonError.is(outcome)) throw outcome;
    return { status: 200, json: encodeGenerateResponse(outcome) };
  } catch (thrown) {
    const { code, message } = TritonError.from(thrown);
    return { status: statusFromCode(code), json: toJsonBytes({ error: message }) };
  }
}
