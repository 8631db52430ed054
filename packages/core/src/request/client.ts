import type { TritonError } from "@tritonjs/protocol";
import type { InferenceRequest, RequestHandle, RequestSender } from "./inference-request.js";

/** The client of a request, as its transport knows it, or the caller in process. */
export interface Client {
  /** True when the client has left. */
  readonly gone: boolean;
  /** The error with which the request of a client that has left ends; CANCELLED unless given. */
  readonly reason?: TritonError | undefined;
  /** Calls `listener` when the client leaves or its time is over. The returned function removes the listener. */
  onGone(listener: () => void): () => void;
  /** First value of a header by its name in lower case. @default no headers */
  header?(name: string): string | undefined;
}

/** The error of a client that left before its request was complete. It is never sent. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";

  constructor(cause?: unknown) {
    super("the client closed the connection before its request was complete", { cause });
  }
}

/** A model that a look-up has found. */
interface Found<M> {
  infer(request: InferenceRequest): RequestHandle;
  /** The version that answers a request without a version. @default this one */
  chosen?(request: InferenceRequest): M;
}

/** Sends requests of a client. */
export interface ClientSender<M = never> extends RequestSender {
  /** Removes the listener of the client. To be called with the final outcome. */
  forgetClient: (() => void) | undefined;
  /** Called with the version that answers, if that may be another than the found one. */
  routed?(model: M): void;
}

/**
 * Queues a request, and cancels it when its client leaves. All calls come by here, over transports and in process.
 *
 * @param anyVersion true for a request that names no version: a router may choose another than the found one
 * @throws the error with which the request is refused, and the client's reason if it has left before
 */
export function sendFor<M extends Found<M>>(
  client: Client | undefined,
  model: M,
  request: InferenceRequest,
  sender: ClientSender<M>,
  anyVersion: boolean,
): RequestHandle {
  if (client?.gone) throw client.reason ?? new ClientGone();
  request.sender = sender;
  const answering = anyVersion ? (model.chosen?.(request) ?? model) : model;
  if (answering !== model) sender.routed?.(answering);
  const handle = answering.infer(request);
  if (client === undefined || handle.settled) return handle;
  // An inline callback has already run by now, and the client may have left meanwhile.
  if (client.gone) handle.cancel(client.reason);
  else {
    const forget = client.onGone(() => void handle.cancel(client.reason));
    // A client may call the listener at once.
    if (handle.settled) forget();
    else sender.forgetClient = forget;
  }
  return handle;
}
