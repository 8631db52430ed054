import { freeMemory, type InferInit } from "@tritonjs/core/frontend";
import { type ModelConfig, NO_PARAMETERS, type Parameters, type Tensor } from "@tritonjs/protocol";
import { KIND, MOVED } from "./frame-kind.js";
import type { IncomingFrame } from "./incoming-frame.js";
import type { OutgoingFrame } from "./outgoing-frame.js";
import { readName, readTensorMap, writeName, writeTensorMap } from "./tensors.js";

/** Flags of a request; fields without a flag have their defaults. */
const FLAG = {
  latest: MOVED << 1,
  start: MOVED << 2,
  end: MOVED << 3,
  id: MOVED << 4,
  parameters: MOVED << 5,
  outputs: MOVED << 6,
  correlationNumber: MOVED << 7,
  correlationText: MOVED << 8,
  limits: MOVED << 9,
  trace: MOVED << 10,
} as const;

/** The model version for which a request was decoded. */
export interface RequestTarget {
  readonly key: number;
  /** True if the client named no version. */
  readonly latest: boolean;
  readonly config: Pick<ModelConfig, "input" | "output">;
}

/** Writes a request. Memory of its large tensors is handed over: the sender must not use it any more. */
export function writeRequest(
  frame: OutgoingFrame,
  number: number,
  { key, latest, config }: RequestTarget,
  init: InferInit,
  trace: string | undefined,
): void {
  const { id = "", requestedOutputs = [], parameters = NO_PARAMETERS, correlationId } = init;
  const { priority = 0, queueTimeoutMicroseconds = 0, sequenceStart, sequenceEnd } = init;
  let flags = 0;
  frame.open(KIND.request, number).word(key);
  if (latest) flags |= FLAG.latest;
  if (sequenceStart) flags |= FLAG.start;
  if (sequenceEnd) flags |= FLAG.end;
  if (id !== "") {
    flags |= FLAG.id;
    frame.text(id);
  }
  if (parameters !== NO_PARAMETERS) {
    flags |= FLAG.parameters;
    frame.parameters(parameters);
  }
  if (requestedOutputs.length > 0) {
    flags |= FLAG.outputs;
    frame.word(requestedOutputs.length);
    for (const name of requestedOutputs) writeName(frame, name, config.output);
  }
  if (correlationId !== undefined) {
    flags |= typeof correlationId === "bigint" ? FLAG.correlationNumber : FLAG.correlationText;
    frame.text(String(correlationId));
  }
  if (priority !== 0 || queueTimeoutMicroseconds !== 0) {
    flags |= FLAG.limits;
    frame.double(priority);
    frame.double(queueTimeoutMicroseconds);
  }
  if (trace !== undefined) {
    flags |= FLAG.trace;
    frame.text(trace);
  }
  writeTensorMap(frame, init.inputs, config.input, true);
  frame.close(flags);
}

/** Reads the number of the version for which a request was decoded, which is its first word. */
export function readRequestKey(frame: IncomingFrame): Omit<RequestTarget, "config"> {
  return { key: frame.word(), latest: (frame.flags & FLAG.latest) !== 0 };
}

/** A request as it arrived. */
export class ReceivedRequest implements InferInit {
  readonly id: string;
  readonly parameters: Parameters;
  readonly requestedOutputs: readonly string[];
  readonly correlationId: bigint | string | undefined;
  readonly priority: number;
  readonly queueTimeoutMicroseconds: number;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  readonly inputs: ReadonlyMap<string, Tensor>;
  trace: InferInit["trace"] = undefined;
  readonly onInputsUsed: (() => void) | undefined;
  /** How a request that may be traced came, as JSON. */
  readonly arrival: string | undefined;

  /** Reads the rest of a request, after its key. */
  constructor(frame: IncomingFrame, config: RequestTarget["config"]) {
    const { flags } = frame;
    this.id = flags & FLAG.id ? frame.text() : "";
    this.parameters = flags & FLAG.parameters ? frame.parameters() : NO_PARAMETERS;
    this.requestedOutputs = flags & FLAG.outputs ? readNames(frame, config.output) : NO_NAMES;
    this.correlationId = readCorrelationId(frame);
    const limited = (flags & FLAG.limits) !== 0;
    this.priority = limited ? frame.double() : 0;
    this.queueTimeoutMicroseconds = limited ? frame.double() : 0;
    this.sequenceStart = (flags & FLAG.start) !== 0;
    this.sequenceEnd = (flags & FLAG.end) !== 0;
    this.arrival = flags & FLAG.trace ? frame.text() : undefined;
    this.inputs = readTensorMap(frame, config.input);
    const { moved } = frame;
    this.onInputsUsed = moved.length === 0 ? undefined : () => moved.forEach(freeMemory);
  }
}

const NO_NAMES: readonly string[] = [];

function readNames(frame: IncomingFrame, known: ModelConfig["output"]): string[] {
  const names = new Array<string>(frame.word());
  for (let i = 0; i < names.length; i++) names[i] = readName(frame, known);
  return names;
}

function readCorrelationId(frame: IncomingFrame): bigint | string | undefined {
  if (frame.flags & FLAG.correlationNumber) return BigInt(frame.text());
  return frame.flags & FLAG.correlationText ? frame.text() : undefined;
}
