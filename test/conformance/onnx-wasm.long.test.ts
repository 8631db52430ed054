import type { DataType } from "@tritonjs/core";
import { expect, it } from "vitest";
import { conformanceModels, hasConformanceData } from "./onnx-data/conformance-models.js";
import { answersOf, type OutputOfEngine, passableSets } from "./onnx-data/engine-answers.js";
import { float16ToNumber } from "./onnx-data/half.js";

const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

/** Distance at which two numbers are the same result: 1e-5, absolute or relative. */
const TOLERANCE = 1e-5;

/** Models whose answers are random numbers. */
const RANDOM = /bernoulli|training_dropout|random/;

it.skipIf(!hasConformanceData)(
  `the engine 'wasm' answers ONNX's conformance data as the engine 'worker' does, to 1e-5${skipped}`,
  async () => {
    const different: unknown[] = [];
    let native = 0;
    let equal = 0;
    const rest = conformanceModels().values();
    const work = async () => {
      for (const model of rest) {
        const sets = await passableSets(model);
        if (sets === undefined) continue;
        const worker = await answersOf(model, "worker", sets);
        if (typeof worker === "string") continue;
        native++;
        const wasm = await answersOf(model, "wasm", sets);
        if (RANDOM.test(model.name) || areClose(worker, wasm)) equal++;
        else different.push({ model: model.name, wasm: typeof wasm === "string" ? wasm : "differs" });
      }
    };
    await Promise.all([work(), work()]);
    console.log(`${equal} of ${native} models answer alike`, different);
    expect(equal).toBeGreaterThanOrEqual(900);
  },
  1_800_000,
);

function areClose(one: OutputOfEngine[][], other: OutputOfEngine[][] | string): boolean {
  if (typeof other === "string") return false;
  return one.every((outputs, i) =>
    outputs.every(([name, datatype, shape, bytes], j) => {
      const [otherName, otherType, otherShape, otherBytes] = other[i]![j]!;
      const isAlike = name === otherName && datatype === otherType && String(shape) === String(otherShape);
      return isAlike && areCloseBytes(datatype, bytes, otherBytes);
    }),
  );
}

function areCloseBytes(datatype: DataType, one: string, other: string): boolean {
  if (one === other) return true;
  const [left, right] = [one, other].map((text) => numbersOf(datatype, text));
  if (left === undefined || right === undefined || left.length !== right.length) return false;
  return left.every((a, i) => {
    const b = right[i]!;
    return Object.is(a, b) || a === b || Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a));
  });
}

/** The numbers of a tensor of floats; undefined for other types, whose answers are equal or not. */
function numbersOf(datatype: DataType, text: string): number[] | undefined {
  const { buffer, byteOffset, byteLength } = Buffer.from(text, "base64");
  const bytes = buffer.slice(byteOffset, byteOffset + byteLength);
  if (datatype === "FP32") return [...new Float32Array(bytes)];
  if (datatype === "FP64") return [...new Float64Array(bytes)];
  if (datatype === "FP16") return [...new Uint16Array(bytes)].map(float16ToNumber);
  return undefined;
}
