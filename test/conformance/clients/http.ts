import type { DataType } from "@tritonjs/core";
import {
  type Answer,
  type Client,
  type Element,
  type InferCall,
  type NamedTensor,
  Refusal,
} from "./client.js";
import { type JsonInput, NumberToken, readJson, writeJson } from "./json-text.js";
import { fromWire, plainBytes, toWire } from "./wire.js";

const HEADER_LENGTH = "inference-header-content-length";

/** Sends and receives JSON. */
export function httpJsonClient(url: string): Client {
  return {
    way: "HTTP JSON",
    async infer(call) {
      const body = writeJson({
        ...headOf(call),
        parameters: call.parameters,
        inputs: call.inputs.map((input) => ({ ...declarationOf(input), data: toJsonData(input) })),
        outputs: call.outputs?.map((name) => ({ name })),
      });
      return answerOf(await post(url, call, Buffer.from(body), {}));
    },
    close() {},
  };
}

/** Sends and receives tensors in the binary extension. */
export function httpBinaryClient(url: string): Client {
  return {
    way: "HTTP binary",
    async infer(call) {
      const tensors = call.inputs.map(({ datatype, elements }) => toWire(datatype, elements));
      const binary = call.outputs === undefined ? { binary_data_output: true } : {};
      const json = writeJson({
        ...headOf(call),
        parameters: { ...call.parameters, ...binary },
        inputs: call.inputs.map((input, i) => ({
          ...declarationOf(input),
          parameters: { binary_data_size: tensors[i]!.byteLength },
        })),
        outputs: call.outputs?.map((name) => ({ name, parameters: { binary_data: true } })),
      });
      const head = Buffer.from(json);
      const headers = { [HEADER_LENGTH]: String(head.byteLength) };
      return answerOf(await post(url, call, Buffer.concat([head, ...tensors]), headers));
    },
    close() {},
  };
}

function headOf({ id }: InferCall): { readonly [name: string]: JsonInput | undefined } {
  return { id };
}

function declarationOf({ name, datatype, shape }: NamedTensor) {
  return { name, datatype, shape };
}

function toJsonData({ datatype, elements }: NamedTensor): JsonInput {
  return elements.map((element) => {
    if (typeof element === "object") return Buffer.from(element).toString("utf8");
    return datatype === "BOOL" ? element === 1 : element;
  });
}

async function post(
  url: string,
  { model, version, signal }: InferCall,
  body: Buffer<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<Response> {
  const path = `/v2/models/${model}${version === undefined ? "" : `/versions/${version}`}/infer`;
  const response = await fetch(url + path, { method: "POST", body, headers, signal });
  if (response.ok) return response;
  const { error } = JSON.parse(await response.text()) as { error: string };
  throw new Refusal(response.status, error);
}

interface JsonAnswer {
  readonly id?: string;
  readonly model_name: string;
  readonly model_version: string;
  readonly outputs: readonly JsonOutput[];
}

interface JsonOutput {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly NumberToken[];
  readonly data?: readonly (NumberToken | boolean | string)[];
  readonly parameters?: { readonly binary_data_size: NumberToken };
}

async function answerOf(response: Response): Promise<Answer> {
  const body = Buffer.from(await response.arrayBuffer());
  const headerLength = Number(response.headers.get(HEADER_LENGTH) ?? body.byteLength);
  const json = readJson(body.toString("utf8", 0, headerLength)) as JsonAnswer;
  let at = headerLength;
  const outputs = json.outputs.map(({ name, datatype, shape, data, parameters }) => {
    let elements: Element[];
    if (data !== undefined) elements = data.map((value) => fromJsonValue(datatype, value));
    else {
      const end = at + numberOf(parameters!.binary_data_size);
      elements = fromWire(datatype, body.subarray(at, end));
      at = end;
    }
    return { name, datatype, shape: shape.map(numberOf), elements };
  });
  if (at !== body.byteLength) throw new Error(`${body.byteLength - at} bytes too many in the answer`);
  return { model: json.model_name, version: json.model_version, id: json.id, outputs };
}

function fromJsonValue(datatype: DataType, value: NumberToken | boolean | string): Element {
  if (typeof value === "string") return plainBytes(Buffer.from(value, "utf8"));
  if (typeof value === "boolean") return Number(value);
  return datatype === "INT64" || datatype === "UINT64" ? BigInt(value.text) : numberOf(value);
}

function numberOf(token: NumberToken): number {
  if (!(token instanceof NumberToken)) throw new Error(`expected a number, got ${typeof token}`);
  return Number(token.text);
}
