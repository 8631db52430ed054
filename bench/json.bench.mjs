/*
 * How long does a tensor in JSON take to become a typed array? Compares the reader of @tritonjs/http with JSON.parse,
 * alone and with the conversion that it needs.
 */
import { saveResult } from "./support/save-result.mjs";
import { importSource } from "./support/tree.mjs";

const { readJsonTensor } = await importSource(undefined, "http", "infer/json-tensor");
const { asArray, member } = await importSource(undefined, "http", "json/json-value");
const { parseJson } = await importSource(undefined, "http", "json/parse-json");

const BYTES = 600_000;
const ROUNDS = 150;

const cases = {
  "FP32, four decimals": ["FP32", () => (Math.random() * 2 - 1).toFixed(4)],
  "FP32, two decimals": ["FP32", () => (Math.random() * 100).toFixed(2)],
  "FP32, as doubles": ["FP32", () => String(Math.fround(Math.random() * 2 - 1))],
  "FP32, seven digits": ["FP32", () => (Math.random() * 2 - 1).toPrecision(7)],
  "INT32, up to three digits": ["INT32", () => String(Math.floor(Math.random() * 256))],
  "INT32, any": ["INT32", () => String(Math.floor((Math.random() - 0.5) * 2 ** 32))],
  "INT64, up to 2^53": ["INT64", () => String(Math.floor(Math.random() * 2 ** 53))],
  "UINT8, nested": ["UINT8", () => String(Math.floor(Math.random() * 256)), 3],
};

const arrays = { FP32: Float32Array, INT32: Int32Array, UINT8: Uint8Array };

function ours(bytes, datatype) {
  const json = parseJson(bytes);
  const [input] = asArray(member(json, "inputs"));
  const shape = [...member(input, "shape").values];
  return readJsonTensor({ name: "IN", datatype, shape, scalar: false }, input, 64 << 20).elements;
}

function theirs(bytes, datatype) {
  const { data } = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"))
    .inputs[0];
  const flat = Array.isArray(data[0]) ? data.flat() : data;
  return datatype === "INT64" ? BigInt64Array.from(flat, BigInt) : arrays[datatype].from(flat);
}

/** The fastest of many runs, in milliseconds. Other work on the machine can only add time. */
function fastest(run) {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    run();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

const rows = {};
const round = (value) => Math.round(value * 100) / 100;

for (const [name, [datatype, number, columns]] of Object.entries(cases)) {
  const numbers = [];
  for (let length = 0; length < BYTES; length += numbers.at(-1).length + 1) numbers.push(number());
  numbers.length -= numbers.length % (columns ?? 1);
  let data = numbers.join(",");
  if (columns !== undefined) {
    const rows = [];
    for (let i = 0; i < numbers.length; i += columns) rows.push(`[${numbers.slice(i, i + columns)}]`);
    data = rows.join(",");
  }
  const bytes = new TextEncoder().encode(
    `{"inputs":[{"name":"IN","datatype":"${datatype}","shape":[${numbers.length}],"data":[${data}]}]}`,
  );
  const parse = () => JSON.parse(Buffer.from(bytes.buffer).toString("utf8"));
  const [our, their, bare] = [() => ours(bytes, datatype), () => theirs(bytes, datatype), parse].map(fastest);
  rows[name] = {
    "ms here": round(our),
    "ms JSON.parse": round(bare),
    ratio: round(bare / our),
    "ratio with typed array": round(their / our),
  };
}
console.table(rows);
saveResult("json", rows);
