import { type ErrorCode, TritonError } from "@tritonjs/core";
import type { Behaviour, ModelRequest, ModelResult, PlayedModel } from "./behaviour.js";
import { sequenceBehaviours } from "./sequence-models.js";
import { elements, firstNumber, firstText, int32, mapInt32, strings, tensor, zipInt32 } from "./tensors.js";

/** The models of `grpc/models.json` that are not plain identities. */
export const grpcBehaviours: Readonly<Record<string, Behaviour>> = {
  ...sequenceBehaviours,
  simple: addSub,
  simple_nb: addSub,
  simple_dyn: addSub,
  stat_a: addSub,
  multiver: (_request, { version }) => ({ OUTPUT0: int32([version]) }),
  opt: ({ inputs }) => {
    const names = ["INPUT0", "INPUT1", "INPUT2"].filter((name) => inputs[name] !== undefined);
    const rows = inputs[names[0] as string]?.shape[0] ?? 0;
    return { OUTPUT0: strings(new Array<string>(rows).fill(names.join(",")), [rows, 1]) };
  },
  // The recorded model also returns them as response parameters, which callbacks do not have.
  params: (request) => ({ OUTPUT0: strings([describeRequest(request)]) }),
  label: ({ inputs: { INPUT0 } }) => {
    const scores = elements(INPUT0) as Float32Array;
    const shape = INPUT0?.shape ?? [];
    const tenths = [...scores].map((score) => roundHalfToEven(Math.fround(score * 10)));
    return {
      SCORES: tensor(scores, shape),
      PLAIN: tensor(scores, shape),
      INTS: int32(tenths, shape),
      GRID: tensor(scores, [shape[0] ?? 0, 2, 2]),
    };
  },
  err: ({ inputs: { MODE } }) => answerAs(firstText(MODE)),
  slow: waitDelay,
  stat_slow: waitDelay,
  qlim: waitDelay,
  qtime: waitDelay,
  qprio: waitDelay,
  slow_c: async (request, model) => {
    const end = firstNumber(request.inputs.DELAY);
    for (let waited = 0; waited < end; waited += 20) {
      if (request.signal.aborted) return new TritonError("CANCELLED", "cancelled in model");
      await model.sleep(Math.min(20, end - waited));
    }
    return { OUT: mapInt32(request.inputs.DELAY, (ms) => ms) };
  },
};

function addSub({ inputs: { INPUT0, INPUT1 } }: ModelRequest): ModelResult {
  return {
    OUTPUT0: zipInt32(INPUT0, INPUT1, (a, b) => a + b),
    OUTPUT1: zipInt32(INPUT0, INPUT1, (a, b) => a - b),
  };
}

async function waitDelay({ inputs }: ModelRequest, model: PlayedModel): Promise<ModelResult> {
  await model.sleep(firstNumber(inputs.DELAY));
  return { OUT: mapInt32(inputs.DELAY, (ms) => ms) };
}

function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

function answerAs(mode: string): ModelResult {
  const [kind = "", ...rest] = mode.split(":");
  switch (kind) {
    case "raise":
      throw new Error(rest.join(":"));
    case "error":
      return new TritonError(rest[0] as ErrorCode, rest.slice(1).join(":"));
    case "error0":
      return new TritonError("INTERNAL", rest.join(":"));
    case "noout":
      return {};
    case "dtype":
      return { OUTPUT0: int32([7]) };
    case "name":
      return { OTHER: strings([mode]) };
    case "extra":
      return { OUTPUT0: strings([mode]), EXTRA: int32([1]) };
    default:
      return { OUTPUT0: strings([mode]) };
  }
}

/** The text that `params` returns for a request: JSON with sorted keys, as Python writes it. */
function describeRequest({
  parameters,
  id,
  correlationId,
  sequenceStart,
  sequenceEnd,
  queueTimeoutMicroseconds,
}: ModelRequest): string {
  const seen: Record<string, unknown> = {
    ...parameters,
    _id: id,
    _corr: correlationId ?? 0,
    _flags: (sequenceStart ? 1 : 0) | (sequenceEnd ? 2 : 0),
    _timeout: queueTimeoutMicroseconds ?? 0,
  };
  const entries = Object.keys(seen).sort();
  return `{${entries.map((key) => `${pythonJson(key)}:${pythonJson(seen[key])}`).join(",")}}`;
}

function pythonJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
