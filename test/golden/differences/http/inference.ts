import type { Models } from "../../support/served-models.js";
import { outputFault } from "../output-fault.js";
import {
  answer,
  answerError,
  errorFor,
  type HttpDifference,
  modelOf,
  perStep,
  recordedError,
  type StepDraft,
  sentText,
  tryJson,
} from "./http-draft.js";

interface InferBody {
  readonly outputs?: readonly {
    readonly name: string;
    readonly datatype: string;
    readonly shape: number[];
  }[];
}

function jsonOf({ response }: StepDraft): InferBody | undefined {
  const { headers = {}, body_text: text } = response;
  if (response.status !== 200 || text === undefined || !/^\{/.test(text)) return undefined;
  const length = headers["Inference-Header-Content-Length"];
  const json = length === undefined ? text : Buffer.from(text).subarray(0, Number(length)).toString();
  return tryJson(json) as InferBody | undefined;
}

/** Outputs of a model that do not match its configuration. */
function checkedOutputs(models: Models): HttpDifference {
  const fault = (step: StepDraft) => {
    const isPlain = /\/infer$/.test(step.request.path) && !sentText(step).includes('"classification"');
    const body = isPlain ? jsonOf(step) : undefined;
    return body && outputFault(models, modelOf(step), body.outputs ?? []);
  };
  return perStep(
    "checked-outputs",
    (step) => fault(step) !== undefined,
    (step, got) => answerError(step, 500, fault(step)!(errorFor(got)), "text/plain"),
    true,
  );
}

const DEADLOCK = /unexpected deadlock, at least one output is not set/;

/** The sum of the two inputs of `ens`. */
function sums(step: StepDraft): number[] {
  const bytes = Buffer.from(sentText(step));
  const length = Number(step.request.headers["Inference-Header-Content-Length"] ?? bytes.length);
  const { inputs } = JSON.parse(bytes.subarray(0, length).toString());
  let at = length;
  const [a, b] = inputs.map(
    ({ data, parameters }: { data?: number[]; parameters?: Record<string, number> }) => {
      if (data !== undefined) return data.flat();
      const tensor = bytes.subarray(at, at + (parameters?.binary_data_size ?? 0));
      at += tensor.length;
      return [...new Int32Array(new Uint8Array(tensor).buffer)];
    },
  );
  return a.map((value: number, i: number) => value + b[i]);
}

/** An output that a later step also reads can be requested alone. */
const innerOutput = perStep(
  "ensemble-inner-output",
  (step) => DEADLOCK.test(recordedError(step) ?? ""),
  (step) => {
    const data = sums(step);
    const sent = Buffer.from(sentText(step));
    const length = Number(step.request.headers["Inference-Header-Content-Length"] ?? sent.length);
    const { outputs, id } = JSON.parse(sent.subarray(0, length).toString());
    const isBinary = outputs[0].parameters?.binary_data === true;
    const tensor = Buffer.from(Int32Array.from(data).buffer);
    const shown = isBinary ? { parameters: { binary_data_size: tensor.length } } : { data };
    const body = {
      ...(id === undefined ? {} : { id }),
      model_name: modelOf(step),
      model_version: "1",
      parameters: { sequence_id: 0, sequence_start: false, sequence_end: false },
      outputs: [{ name: "SUM", datatype: "INT32", shape: [data.length / 16, 16], ...shown }],
    };
    answer(step.response, 200, body);
    if (isBinary) binary(step, JSON.stringify(body), tensor);
  },
);

function binary({ response }: StepDraft, json: string, tensor: Buffer): void {
  delete response.body_text;
  response.body_b64 = Buffer.concat([Buffer.from(json), tensor]).toString("base64");
  response.headers = {
    "Content-Type": "application/octet-stream",
    "Inference-Header-Content-Length": `${Buffer.byteLength(json)}`,
  };
}

const SEQUENCE = '"sequence_id":0,"sequence_start":false,"sequence_end":false';

/** The parameters of an ensemble come once, and its outputs in the order of its configuration. */
function ensembleParameters(models: Models): HttpDifference {
  return perStep(
    "ensemble-parameters",
    ({ response }) => response.body_text?.includes(`${SEQUENCE},${SEQUENCE}`) ?? false,
    (step) => {
      const { response } = step;
      const bytes = Buffer.from(response.body_text as string);
      const length = response.headers?.["Inference-Header-Content-Length"];
      const json = bytes.subarray(0, length === undefined ? bytes.length : Number(length)).toString();
      const order = (models.get(modelOf(step))?.config.output ?? []).map(({ name }) => name);
      const body = JSON.parse(json.replaceAll(`${SEQUENCE},${SEQUENCE}`, SEQUENCE));
      const inBinary = body.outputs.filter((output: { data?: unknown }) => output.data === undefined);
      if (inBinary.length > 1) throw new Error("two tensors in binary: their order is to be changed too");
      body.outputs.sort(
        (a: { name: string }, b: { name: string }) => order.indexOf(a.name) - order.indexOf(b.name),
      );
      const text = JSON.stringify(body);
      response.body_text = text + bytes.subarray(Buffer.byteLength(json)).toString();
      if (length !== undefined) {
        (response.headers as Record<string, string>)["Inference-Header-Content-Length"] =
          `${Buffer.byteLength(text)}`;
      }
    },
  );
}

/** Answers of the recorded models with the code UNAVAILABLE. */
const UNAVAILABLE = /^(model says no|failed at word \d+)$/;

/** The status of an error that comes first is that of its code, which the recorded server lost. */
const generateErrorStatus = perStep(
  "generate-error-status",
  ({ request, response }) =>
    /\/generate(_stream)?$/.test(request.path) &&
    response.status === 400 &&
    UNAVAILABLE.test(firstError(response.body_text)),
  ({ response }) => {
    response.status = 503;
  },
);

function firstError(text = ""): string {
  const json = /^(?:data: )?(\{"error":[^\n]*\})/.exec(text)?.[1] ?? "";
  return (tryJson(json) as { error: string } | undefined)?.error ?? "";
}

/** Requests that ended the recorded server. */
const survives = perStep(
  "survives",
  ({ response }) => response.status === null && "server_crashed" in response,
  (step) => {
    const [{ datatype, shape }] = JSON.parse(sentText(step)).inputs;
    if (datatype === "BYTES") {
      const text = "class result not available for output due to unsupported type 'BYTES'";
      answerError(step, 400, text, "text/plain");
    } else {
      const outputs = [{ name: "OUTPUT0", datatype: "BYTES", shape, data: [] }];
      answer(step.response, 200, { model_name: modelOf(step), model_version: "1", outputs });
    }
  },
);

const EXCEPTION = /^Failed to process the request\(s\) for model '[^']*', message: \w+: ([\s\S]*?)\n\nAt:\n/;

/** An error thrown by a callback is reported unchanged. */
const exceptionText = perStep(
  "exception-text",
  (step) => EXCEPTION.test(recordedError(step) ?? ""),
  (step) => {
    const [, text = ""] = EXCEPTION.exec(recordedError(step) as string) as RegExpExecArray;
    step.response.body_text = JSON.stringify({ error: text });
  },
  true,
);

/** Rules about the answers of models. */
export function inferenceRules(models: Models): readonly HttpDifference[] {
  return [
    checkedOutputs(models),
    innerOutput,
    ensembleParameters(models),
    exceptionText,
    generateErrorStatus,
    survives,
  ];
}
