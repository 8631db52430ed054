import { Tensor } from "@tritonjs/core";
import { type Elements, typedArrayFor } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import type { SessionData } from "../../packages/backends/src/onnxruntime/onnx-options.js";
import { openSessionOf } from "../../packages/backends/src/onnxruntime/ort-session.js";
import { fromResults, toFeeds } from "../../packages/backends/src/onnxruntime/ort-tensors.js";
import type { NamedTensor } from "./clients/client.js";
import {
  type ConformanceModel,
  conformanceModels,
  dataSets,
  hasConformanceData,
} from "./onnx-data/conformance-models.js";
import { float16ToNumber } from "./onnx-data/half.js";

const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

/** Distance at which two numbers are the same result: absolute below 1, relative above. */
const TOLERANCE = 1e-5;

type Outputs = ReadonlyMap<string, Tensor>;

/** Outputs of a model for each of its data sets, in a session as workers open it; undefined if it cannot run. */
async function outputsOf(
  { directory }: ConformanceModel,
  sets: readonly NamedTensor[][],
  isWasm: boolean,
): Promise<Outputs[] | undefined> {
  const data: SessionData = {
    isWasm,
    model: `${directory}/model.onnx`,
    providers: ["cpu"],
    strict: true,
    sessionOptions: { intraOpNumThreads: 1, logSeverityLevel: 4 },
    scalars: [],
    ranksUnknown: [],
    native: {},
  };
  const outputs: Outputs[] = [];
  try {
    const { session } = await openSessionOf(data, () => {});
    for (const set of sets) {
      const inputs = set.map(({ name, datatype, shape, elements }, i) => {
        const typed = datatype === "BYTES" ? elements : new (typedArrayFor(datatype))(elements as never);
        const tensor = Tensor.fromElements(datatype, shape, typed as Elements);
        return [session.inputNames.includes(name) ? name : session.inputNames[i]!, tensor] as const;
      });
      outputs.push(fromResults(await session.run(toFeeds(new Map(inputs), new Set()))));
    }
    await session.release();
  } catch {
    return undefined;
  }
  return outputs;
}

function areClose(one: Outputs, other: Outputs | undefined): boolean {
  return [...one].every(([name, tensor]) => {
    const { datatype, shape, bytes } = other?.get(name) ?? tensor;
    if (other?.get(name) === undefined || datatype !== tensor.datatype) return false;
    if (String(shape) !== String(tensor.shape)) return false;
    if (Buffer.compare(bytes, tensor.bytes) === 0) return true;
    if (!datatype.startsWith("FP")) return false;
    const [left, right] = [tensor, other.get(name)!].map(({ elements }) =>
      Array.from(elements as Float32Array, (value) => (datatype === "FP16" ? float16ToNumber(value) : value)),
    ) as [number[], number[]];
    return left.every((a, i) => {
      const b = right[i]!;
      return Object.is(a, b) || a === b || Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a));
    });
  });
}

it.skipIf(!hasConformanceData)(
  `WebAssembly answers ONNX's conformance data as the native library does, to 1e-5${skipped}`,
  async () => {
    let native = 0;
    const different: string[] = [];
    for (const model of conformanceModels()) {
      const sets = (await dataSets(model)).map(({ inputs }) => inputs);
      // onnxruntime-node cannot pass tensors of bfloat16.
      if (sets.flat().includes(undefined) || model.name.includes("BFLOAT16")) continue;
      const expected = await outputsOf(model, sets as NamedTensor[][], false);
      if (expected === undefined) continue;
      native++;
      const got = await outputsOf(model, sets as NamedTensor[][], true);
      if (!expected.every((outputs, i) => areClose(outputs, got?.[i]))) different.push(model.name);
    }
    expect(native).toBeGreaterThan(950);
    // Random numbers, and sums of many numbers in another order.
    expect(
      different.filter((name) => !/bernoulli|training_dropout|NCd1d2d3d4d5_mean_weight/.test(name)),
    ).toEqual([]);
    expect(native - different.length).toBeGreaterThan(900);
  },
  600_000,
);
