import { NO_PARAMETERS, type Parameters, type TritonError } from "@tritonjs/protocol";
import { type inference, inferencePath } from "@tritonjs/protocol/grpc";
import { type Client, Exchange, type InferenceService } from "@tritonjs/server";
import {
  forwardHeaders,
  type HeaderPattern,
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  loadReportMessage,
  readCallerHeaders,
  writeLoadReport,
} from "@tritonjs/server/internal";
import type { Shutdown } from "../shutdown.js";
import { type Call, type CallHeaders, type Method, unary } from "../transport/method.js";
import { GrpcSampler } from "./grpc-trace.js";
import { decodeInferRequest, freeMessageWhenUsed } from "./infer-request.js";
import { inferRequestDecoder } from "./infer-request-limits.js";
import { encodeInferResponse, encodeInferResponseParts } from "./infer-response.js";

type InferMessage = inference.ModelInferResponse.$Properties;

/** Most bytes of tensors in a message that may be kept until its refusal is sent. */
const MOST_KEPT_BYTES = 64 * 1024;

/** @param forwarded pattern of the headers that go to the model as parameters */
export function inferMethod(
  service: InferenceService,
  shutdown: Shutdown,
  forwarded: HeaderPattern | undefined,
): Method {
  const sampler = new GrpcSampler(service.tracing, "ModelInfer");
  return unary(
    {
      path: inferencePath("ModelInfer"),
      protocol: "inference",
      request: inferRequestDecoder(service),
      response: { encodeParts: encodeInferResponseParts },
    },
    (message, call) => {
      shutdown.refuseIfBegun();
      return modelInfer(service, message, new UnaryClient(call, shutdown), sampler, forwarded);
    },
  );
}

/** Texts and limits of the exchange of one message. */
const UNARY = { unaryOnly: "ModelInfer RPC doesn't support models with decoupled transaction policy" };
const LARGE_UNARY = { ...UNARY, mayWait: false };

const headerOf = (headers: CallHeaders, name: string): string | undefined => headers.get(name);

async function modelInfer(
  service: InferenceService,
  message: inference.ModelInferRequest,
  client: UnaryClient,
  sampler: GrpcSampler,
  forwarded: HeaderPattern | undefined,
): Promise<InferMessage> {
  const { call } = client;
  const { modelName, modelVersion } = message;
  const options = mayWait(message) ? UNARY : LARGE_UNARY;
  const exchange = new Exchange(
    service,
    client,
    service.model(modelName, modelVersion),
    modelVersion,
    options,
  );
  const turn = exchange.turn(message.id);
  if (turn !== undefined) {
    await turn;
    exchange.current();
  }
  const { model } = exchange;
  const trace = sampler.sample(model.name, call);
  if (trace !== undefined) call.onClose(() => trace.sent());
  let response: InferMessage;
  try {
    const decoded = decodeInferRequest(message, forwardedParameters(call, forwarded), exchange);
    exchange.trace = trace;
    decoded.trace = trace?.request;
    readCallerHeaders(decoded, model.reads, call.headers, headerOf);
    if (call.ownsMessages) decoded.onInputsUsed = freeMessageWhenUsed(message);
    const answer = await exchange.single(decoded);
    response = encodeInferResponse(exchange.model, answer, decoded.outputs);
    trace?.answered();
  } catch (error) {
    trace?.answered(error);
    throw error;
  } finally {
    exchange.release();
    trace?.sending();
  }
  const format = reportFormat(call);
  if (format !== undefined) await reportLoad(service, call, model, format);
  return response;
}

/** The client of a call, which ends early too when the server stops. */
class UnaryClient implements Client {
  reason: TritonError | undefined = undefined;

  constructor(
    readonly call: Call,
    private readonly shutdown: Shutdown,
  ) {}

  /** A call that is over calls its listeners at once. */
  get gone(): boolean {
    return false;
  }

  header(name: string): string | undefined {
    return this.call.headers.get(name);
  }

  onGone(listener: () => void): () => void {
    this.call.onClose(listener);
    return this.shutdown.onExpire((reason) => {
      this.reason = reason;
      listener();
    });
  }
}

/**
 * True when a message may be kept until its refusal is sent. Large messages are rejected at once, which frees their
 * memory.
 */
export function mayWait(message: inference.ModelInferRequest): boolean {
  return contentBytes(message) <= MOST_KEPT_BYTES;
}

/** Estimates the memory that the tensors of a message take, in bytes. */
function contentBytes({ rawInputContents, inputs }: inference.ModelInferRequest): number {
  let bytes = 0;
  for (const { length } of rawInputContents) bytes += length;
  for (const { contents } of inputs) {
    if (contents == null) continue;
    const { boolContents, intContents, int64Contents, uintContents, uint64Contents } = contents;
    for (const list of [boolContents, intContents, int64Contents, uintContents, uint64Contents]) {
      bytes += 8 * (list?.length ?? 0);
    }
    bytes += 8 * ((contents.fp32Contents?.length ?? 0) + (contents.fp64Contents?.length ?? 0));
    for (const { length } of contents.bytesContents ?? []) bytes += 8 + length;
  }
  return bytes;
}

export function forwardedParameters({ headers }: Call, forwarded: HeaderPattern | undefined): Parameters {
  return forwarded === undefined
    ? NO_PARAMETERS
    : forwardHeaders(headers.entries(), forwarded, NO_PARAMETERS);
}

/** The format of the load report that a client asks for; undefined for a client that does not ask. */
export function reportFormat({ headers }: Call): string | undefined {
  return headers.get(LOAD_REPORT_FORMAT_HEADER);
}

/**
 * Adds the load of a model to the trailing metadata of a call. The binary format has the key that gRPC's own load
 * balancers read: `endpoint-load-metrics-bin`.
 */
export async function reportLoad(
  service: InferenceService,
  call: Call,
  model: { readonly name: string; readonly version: number },
  format: string,
): Promise<void> {
  const report = await service.loadReport?.(model.name, String(model.version)).catch(() => undefined);
  if (report === undefined) return;
  if (format.trim().toLowerCase() === "bin") {
    call.addTrailer(`${LOAD_REPORT_HEADER}-bin`, loadReportMessage(report));
    return;
  }
  const text = writeLoadReport(report, format);
  if (text !== undefined) call.addTrailer(LOAD_REPORT_HEADER, text);
}
