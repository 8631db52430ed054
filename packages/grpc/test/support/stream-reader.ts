import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import type { inference } from "@tritonjs/protocol/grpc";
import type { InferenceRequest } from "@tritonjs/testing";
import { FakeService, responseTo } from "./fake-service.js";

type Received = inference.ModelStreamInferResponse;
type Stream = ClientDuplexStream<inference.ModelInferRequest.$Properties, Received>;

/** Reads the messages of a stream one by one, and its status. */
export function reader(stream: Stream) {
  const messages: Received[] = [];
  const waiting: ((message: Received) => void)[] = [];
  stream.on("data", (message: Received) => {
    const next = waiting.shift();
    if (next === undefined) messages.push(message);
    else next(message);
  });
  const ended = new Promise<{ code: number; details: string }>((resolve) => {
    stream.on("error", ({ code, details }: ServiceError) => resolve({ code, details }));
    stream.on("status", ({ code, details }) => resolve({ code, details }));
  });
  return {
    ended,
    messages,
    next: (): Promise<Received> => {
      const message = messages.shift();
      return message === undefined
        ? new Promise((resolve) => waiting.push(resolve))
        : Promise.resolve(message);
    },
  };
}

/** A service whose requests the test answers. */
export function manualService(decoupled = false) {
  const requests: InferenceRequest[] = [];
  let wake = (): void => {};
  const service = new FakeService({ modelTransactionPolicy: { decoupled } }, (request) => {
    requests.push(request);
    wake();
  });
  const arrived = async (count: number): Promise<InferenceRequest[]> => {
    while (requests.length < count) await new Promise<void>((resolve) => (wake = resolve));
    return requests;
  };
  return { service, arrived };
}

/** Answers a request without outputs. */
export const answer = (request: InferenceRequest, final = true) =>
  request.respond(responseTo(request, new Map()), final);

/** The status of a stream that ended without an error. */
export const ok = { code: 0, details: "" };
