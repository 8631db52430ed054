import type { UnaryResult } from "../../support/grpc/client.js";
import type { GrpcCase } from "../../support/grpc/grpc-case.js";
import type { Models } from "../../support/served-models.js";
import type { Draft } from "../difference.js";
import { outputFault } from "../output-fault.js";
import { editTexts } from "../texts.js";
import { answerStatus, detailsOf, type GrpcDifference, rawInput } from "./grpc-draft.js";

interface RecordedOutput {
  readonly name: string;
  readonly datatype: string;
  readonly shape: string[];
}

function checkedOutputs(models: Models): GrpcDifference {
  const fault = ({ rpc, request, response, status }: GrpcCase | Draft<GrpcCase>) => {
    if (
      rpc !== "ModelInfer" ||
      status?.code !== "OK" ||
      JSON.stringify(request).includes('"classification"')
    ) {
      return undefined;
    }
    return outputFault(models, String(request?.model_name), (response?.outputs ?? []) as RecordedOutput[]);
  };
  return {
    rule: "checked-outputs",
    onlyCallbacks: true,
    applies: (recorded) => fault(recorded) !== undefined,
    amend: (draft, got) => answerStatus(draft, "INTERNAL", fault(draft)!(got?.status.details ?? "")),
  };
}

const NO_DOUBLES = /Expect parameters values to have type bool\/int\/str, found type <class 'float'>/;

/** The output has the request's parameters as the model saw them. */
const doubleParameters: GrpcDifference = {
  rule: "double-parameters",
  onlyCallbacks: true,
  applies: (recorded) => NO_DOUBLES.test(detailsOf(recorded)),
  amend(draft, got) {
    const sent = (draft.request?.parameters ?? {}) as Record<string, Record<string, unknown>>;
    const [bytes = ""] = (got?.response?.raw_output_contents ?? []) as string[];
    const seen = JSON.parse(Buffer.from(bytes, "base64").subarray(4).toString()) as Record<string, unknown>;
    for (const [name, value] of Object.entries(sent)) {
      if (seen[name] !== Object.values(value)[0]) throw new Error(`the model saw ${name}: ${seen[name]}`);
    }
    draft.response = structuredClone((got as UnaryResult).response) as typeof draft.response;
    draft.status = { code: "OK", details: "" };
  },
};

/** The recorded model returns parameters. */
const callbackParameters: GrpcDifference = {
  rule: "callback-response-parameters",
  onlyCallbacks: true,
  applies: ({ request, response }) => request?.model_name === "params" && response?.parameters !== undefined,
  amend: (draft) => void delete (draft.response as Record<string, unknown>).parameters,
};

const EXCEPTION = /^Failed to process the request\(s\) for model '[^']*', message: \w+: ([\s\S]*?)\n\nAt:\n/;

/** An error thrown by a callback is reported unchanged. */
const exceptionText: GrpcDifference = {
  rule: "exception-text",
  onlyCallbacks: true,
  applies: (recorded) => textsOf(recorded).some((text) => EXCEPTION.test(text) && !NO_DOUBLES.test(text)),
  amend: (draft) => editTexts(draft, (text) => EXCEPTION.exec(text)?.[1] ?? text),
};

function textsOf(recorded: GrpcCase): string[] {
  const events = (recorded.events ?? []).flatMap(({ recv, status }) => [
    recv?.error_message,
    status?.details,
  ]);
  return [detailsOf(recorded), ...events].filter((text) => typeof text === "string");
}

interface RecordedInput {
  readonly name: string;
  readonly shape: string[];
  readonly parameters?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

function inputShapes({ request }: GrpcCase | Draft<GrpcCase>): { name: string; shape: bigint[] }[] {
  const inputs = (request?.inputs ?? []) as RecordedInput[];
  return inputs.map(({ name, shape = [] }) => ({ name, shape: shape.map(BigInt) }));
}

function isBug({ flags }: GrpcCase): boolean {
  return flags?.includes("bug") ?? false;
}

/** The elements overflow 64 bits to the given number: the recorded model gets them, and its process ends. */
const shapeOverflow: GrpcDifference = {
  rule: "shape-overflow",
  applies: (recorded) =>
    isBug(recorded) && /is not healthy/.test(detailsOf(recorded)) && overflow(recorded) !== undefined,
  amend(draft) {
    const { name, shape } = overflow(draft)!;
    const dim = shape.find((one) => one > BigInt(Number.MAX_SAFE_INTEGER));
    const list = `[${shape.join(",")}]`;
    const fault =
      dim === undefined
        ? `the number of elements of shape ${list} is too large`
        : `invalid dimension ${dim} in shape ${list}`;
    const id = String(draft.request?.id ?? "<id_unknown>");
    const text = `[request id: ${id}] input '${name}' of model '${draft.request?.model_name}': ${fault}`;
    answerStatus(draft, "INVALID_ARGUMENT", text);
  },
};

function overflow(recorded: GrpcCase | Draft<GrpcCase>) {
  return inputShapes(recorded).find(
    ({ shape }) => shape.reduce((product, dim) => product * dim, 1n) > BigInt(Number.MAX_SAFE_INTEGER),
  );
}

/** The recorded process ended. */
const survives: GrpcDifference = {
  rule: "survives",
  applies: (recorded) => isBug(recorded) && detailsOf(recorded) === "Socket closed",
  amend: (draft) =>
    answerStatus(
      draft,
      "INVALID_ARGUMENT",
      "class result not available for output due to unsupported type 'BYTES'",
    ),
};

const DEADLOCK = /unexpected deadlock, at least one output is not set/;

function ints(bytes: Buffer | undefined): number[] {
  return bytes === undefined ? [] : [...new Int32Array(new Uint8Array(bytes).buffer)];
}

/** The sum of the two inputs of `ens`, which its second step also reads. */
const innerOutput: GrpcDifference = {
  rule: "ensemble-inner-output",
  applies: (recorded) => DEADLOCK.test(detailsOf(recorded)),
  amend(draft) {
    const [a, b] = [ints(rawInput(draft, "A")), ints(rawInput(draft, "B"))];
    const data = Int32Array.from(a, (value, i) => value + (b[i] ?? 0));
    const [input] = (draft.request?.inputs ?? []) as unknown as RecordedInput[];
    draft.status = { code: "OK", details: "" };
    draft.response = {
      model_name: draft.request?.model_name,
      model_version: "1",
      ...(draft.request?.id === undefined ? {} : { id: draft.request.id }),
      parameters: {
        sequence_id: { int64_param: "0" },
        sequence_start: { bool_param: false },
        sequence_end: { bool_param: false },
      },
      outputs: [{ name: "SUM", datatype: "INT32", shape: input?.shape }],
      raw_output_contents: [Buffer.from(data.buffer).toString("base64")],
    } as typeof draft.response;
  },
};

/** Newer servers refuse to forward these, as the note of the case says. */
const reservedHeaders: GrpcDifference = {
  rule: "reserved-headers",
  applies: ({ flags, note = "" }) =>
    (flags?.includes("version") ?? false) &&
    note.includes("reserved for Triton usage and cannot be forwarded"),
  amend(draft) {
    const [[name] = [""]] = draft.metadata as [string, string][];
    const text = `Header '${name}' is reserved for Triton usage and cannot be forwarded.`;
    answerStatus(draft, "INVALID_ARGUMENT", text);
  },
};

/** The model reports what it saw as JSON: an integer beyond 2^53 is rounded on its way. */
const bigIntegers: GrpcDifference = {
  rule: "big-integers",
  applies: (recorded) => /\d{17,}/.test(seenBy(recorded)),
  amend(draft) {
    const text = seenBy(draft).replace(/\d{17,}/g, (digits) => String(Number(digits)));
    const bytes = Buffer.alloc(4 + Buffer.byteLength(text));
    bytes.writeUInt32LE(Buffer.byteLength(text));
    bytes.write(text, 4);
    (draft.response as Record<string, unknown>).raw_output_contents = [bytes.toString("base64")];
  },
};

function seenBy({ request, response }: GrpcCase | Draft<GrpcCase>): string {
  if (request?.model_name !== "params") return "";
  const [bytes = ""] = (response?.raw_output_contents ?? []) as string[];
  return Buffer.from(bytes, "base64").subarray(4).toString();
}

/** A batcher with a timeout checks in time: a request that waits less than its timeout is served. */
const timeoutNotReached: GrpcDifference = {
  rule: "timeout-not-reached",
  applies: ({ form, flags, events = [] }) =>
    form === "parallel" &&
    (flags?.includes("racy") ?? false) &&
    events.some(({ status }) => status?.details === "Request timeout expired"),
  amend(draft) {
    for (const event of draft.events ?? []) {
      if (event.status?.details !== "Request timeout expired") continue;
      const sent = draft.events?.find(({ call, send }) => call === event.call && send !== undefined)?.send;
      const { model_name, id, inputs, raw_input_contents: data } = sent as Record<string, unknown>;
      const outputs = [{ ...(inputs as object[])[0], name: "OUT" }];
      event.status = { code: "OK", details: "" };
      event.recv = {
        model_name,
        model_version: "1",
        id,
        outputs,
        raw_output_contents: data,
      } as typeof event.recv;
    }
  },
};

/** Rules about inference. */
export function inferenceRules(models: Models): readonly GrpcDifference[] {
  return [
    checkedOutputs(models),
    doubleParameters,
    callbackParameters,
    exceptionText,
    shapeOverflow,
    survives,
    innerOutput,
    reservedHeaders,
    bigIntegers,
    timeoutNotReached,
  ];
}
