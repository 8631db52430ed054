import type { ExecutableRequest, Execution } from "../../instance/executor.js";
import { FrameBody } from "./frames.js";
import { parametersJson } from "./messages.js";

const START = 1;
const END = 2;

/**
 * The frame that sends a batch to the model. Its requests are not merged.
 *
 * @param waits true if it is sent while another batch runs: it is dropped if all its requests are cancelled before its turn
 */
export function batchFrame(
  batch: number,
  { requests }: Execution,
  waits: boolean,
): { header: object; body: FrameBody } {
  const body = new FrameBody();
  const header = {
    type: "execute",
    batch,
    waits,
    requests: requests.map((request) => ({
      id: request.id,
      correlationId: writeCorrelationId(request.correlationId),
      flags: flagsOf(request),
      timeout: request.queueTimeoutMicroseconds,
      parameters: parametersJson(request.parameters),
      requested: request.requestedOutputs,
      ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
      inputs: body.addTensors(request.inputs),
    })),
  };
  return { header, body };
}

/** A number is sent as text in a list, because it may have more digits than JSON can hold. */
function writeCorrelationId(id: bigint | string | undefined): string | readonly [string] {
  return typeof id === "string" ? [id] : String(id ?? 0n);
}

function flagsOf({ sequenceStart, sequenceEnd }: ExecutableRequest): number {
  return (sequenceStart ? START : 0) | (sequenceEnd ? END : 0);
}

/** Reads from the flags of a request whether it starts or ends a sequence. */
export function readFlags(flags: number): { readonly sequenceStart: boolean; readonly sequenceEnd: boolean } {
  return { sequenceStart: (flags & START) !== 0, sequenceEnd: (flags & END) !== 0 };
}
