/*
 * Requests and answers of the v2 protocol. Typed values travel in JSON, as they were typed, so 64-bit integers keep all
 * their digits. Files and half floats travel as bytes after the JSON.
 */
import { fromBf16, fromFp16, toBf16, toFp16 } from "./half-floats.js";

const HALVES = { FP16: [toFp16, fromFp16], BF16: [toBf16, fromBf16] };

const ARRAYS = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

export const isFloat = (datatype) => /^(FP|BF)/.test(datatype);

const INTEGER = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Reads numbers that are separated by commas or spaces, and checks them; brackets are ignored. */
export function readNumbers(text, datatype) {
  const words = text.split(/[\s,[\]]+/).filter((word) => word !== "");
  return words.map((word) => {
    if (datatype === "BOOL") {
      if (/^(true|1)$/i.test(word)) return "true";
      if (/^(false|0)$/i.test(word)) return "false";
    } else if (isFloat(datatype)) {
      if (NUMBER.test(word)) return String(Number(word));
      if (/^[+-]?(nan|inf(inity)?)$/i.test(word)) return word;
    } else if (INTEGER.test(word)) return word.replace(/^\+/, "");
    throw new Error(`expected a value of ${datatype}, got "${word}"`);
  });
}

/** Bytes of numbers. */
export function numberBytes(values, datatype) {
  const half = HALVES[datatype];
  const array = half
    ? Uint16Array.from(values, (value) => half[0](Number(value)))
    : ARRAYS[datatype].from(
        values,
        datatype.endsWith("INT64")
          ? (value) => BigInt(Math.round(value))
          : isFloat(datatype)
            ? Number
            : (value) => Math.round(value),
      );
  return new Uint8Array(array.buffer);
}

/** Bytes of BYTES elements: the length of each, then its bytes. */
export function elementBytes(elements) {
  const all = new Uint8Array(elements.reduce((size, one) => size + 4 + one.length, 0));
  const view = new DataView(all.buffer);
  let at = 0;
  for (const one of elements) {
    view.setUint32(at, one.length, true);
    all.set(one, at + 4);
    at += 4 + one.length;
  }
  return all;
}

export const mustBeBytes = (datatype) => datatype in HALVES;

/**
 * Makes the body of a request.
 *
 * @param inputs each with `name`, `datatype`, `shape`, and either `words`, the JSON of its elements, or `bytes`
 */
export function inferRequest(inputs, outputs, id) {
  const described = inputs.map(({ name, datatype, shape, words, bytes }) => {
    const content = bytes
      ? `"parameters":{"binary_data_size":${bytes.length}}`
      : `"data":[${words.join(",")}]`;
    return `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":${JSON.stringify(shape)},${content}}`;
  });
  const wanted = outputs.map(({ name, datatype }) => ({
    name,
    parameters: { binary_data: mustBeBytes(datatype) },
  }));
  const json = `{"id":${JSON.stringify(id)},"inputs":[${described.join(",")}],"outputs":${JSON.stringify(wanted)}}`;
  const head = new TextEncoder().encode(json);
  const blobs = inputs.filter(({ bytes }) => bytes).map(({ bytes }) => bytes);
  const headers = blobs.length === 0 ? {} : { "inference-header-content-length": String(head.length) };
  return { method: "POST", headers, body: new Blob([head, ...blobs]) };
}

/** Reads an answer: its outputs as names, types, shapes and values. */
export async function readAnswer(response) {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const head = Number(response.headers.get("inference-header-content-length") ?? bytes.length);
  // Integers of 64 bits would lose digits as numbers, so their digits become texts.
  const text = new TextDecoder().decode(bytes.subarray(0, head));
  const { outputs = [], ...rest } = JSON.parse(quoteLongIntegers(text));
  let at = head;
  return {
    ...rest,
    outputs: outputs.map(({ name, datatype, shape, data, parameters }) => {
      const size = parameters?.binary_data_size;
      if (size === undefined) return { name, datatype, shape, data };
      const blob = bytes.slice(at, at + size);
      at += size;
      return { name, datatype, shape, data: Array.from(new Uint16Array(blob.buffer), HALVES[datatype][1]) };
    }),
  };
}

/** Puts integers of more than 15 digits, and the tokens NaN and Infinity, into quotes; texts stay as they are. */
function quoteLongIntegers(json) {
  return json.replace(/"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)\b|-?\d{16,}(?![\d.eE])/g, (token) =>
    token[0] === '"' ? token : `"${token}"`,
  );
}
