import type { Parameters } from "@tritonjs/protocol";
import type { BatchMessage, DiagnosedRequest } from "./messages.js";

/** The parts of a request in progress that messages show. */
interface RequestSource {
  readonly id: string;
  readonly rows: number;
  readonly priority: number;
  readonly parameters: Parameters;
  readonly correlationId: bigint | string | undefined;
  readonly callers: readonly string[];
  readonly trace: { readonly traceId: string | undefined } | undefined;
}

/** What messages show of each request, so that all of them have the same object. Empty without subscribers. */
const known = new WeakMap<RequestSource, DiagnosedRequest>();

/** The object that stands for a request in all messages. */
export function diagnosedRequest(request: RequestSource, model: string, version: string): DiagnosedRequest {
  let shown = known.get(request);
  if (shown === undefined) {
    const { id, rows, priority, parameters, correlationId, callers, trace } = request;
    const traceId = trace?.traceId;
    shown = { model, version, id, rows, priority, parameters, correlationId, callers, traceId };
    known.set(request, shown);
  }
  return shown;
}

/** A batch that an instance has taken. */
interface BatchSource {
  readonly batchSize: number;
  readonly cut: BatchMessage["cut"];
  /** Its requests; null requests fill empty slots of a sequence batch, and are left out. */
  readonly requests: readonly (RequestSource & { readonly ready: boolean })[];
}

/** The message about a batch. */
export function batchMessage(
  batch: BatchSource,
  model: string,
  version: string,
  instance: string,
): BatchMessage {
  const { batchSize, cut, requests } = batch;
  const shown = requests.filter(({ ready }) => ready).map((one) => diagnosedRequest(one, model, version));
  return { model, version, instance, batchSize, cut, requests: shown };
}
