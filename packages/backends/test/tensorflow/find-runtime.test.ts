import { describe, expect, it } from "vitest";
import type { ModelJson } from "../../src/tensorflow/model-json.js";
import { graphDescription, tensorDataType } from "../../src/tensorflow/model-json.js";
import { findRuntime, restoreOldUtilities } from "../../src/tensorflow/tensorflow-runtime.js";

const needs = { runtime: undefined, onGpu: false };
const all = ["tfjs", "tfjs-backend-wasm", "tfjs-node", "tfjs-node-gpu"];

function choose(installed: readonly string[], more: Partial<Parameters<typeof findRuntime>[0]> = {}): string {
  try {
    return findRuntime({ ...needs, ...more }, (name) => installed.includes(name.replace("@tensorflow/", "")));
  } catch (error) {
    return (error as Error).message;
  }
}

describe("the runtime chosen for a TensorFlow model", () => {
  it("is the fastest one installed", () => {
    expect(choose(all)).toBe("tfjs-node");
    expect(choose(["tfjs", "tfjs-node-gpu"])).toBe("tfjs-node-gpu");
    expect(choose(["tfjs", "tfjs-backend-wasm"])).toBe("wasm");
    expect(choose(["tfjs"])).toBe("cpu");
    expect(choose(all, { runtime: "cpu" })).toBe("cpu");
  });

  it("is tfjs-node-gpu on a GPU", () => {
    expect(choose(all, { onGpu: true })).toBe("tfjs-node-gpu");
    expect(choose(["tfjs", "tfjs-node"], { onGpu: true })).toBe(
      "TensorFlow.js is not installed: install @tensorflow/tfjs-node-gpu next to @tritonjs/backends",
    );
    expect(choose(all, { runtime: "wasm", onGpu: true })).toBe(
      "TensorFlow's runtime for an instance on a GPU: expected tfjs-node-gpu, got 'wasm'",
    );
  });
});

it("restoreOldUtilities gives tfjs-node the functions that Node has removed", () => {
  const util: Record<string, unknown> = {};
  restoreOldUtilities(util);
  const { isNullOrUndefined, isArray } = util as Record<string, (value: unknown) => boolean>;
  expect([undefined, null, 0, []].map((value) => isNullOrUndefined!(value))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(isArray!([])).toBe(true);
  const kept = () => "its own";
  const newer = { isArray: kept };
  restoreOldUtilities(newer);
  expect(newer.isArray).toBe(kept);
});

describe("the description of a GraphModel", () => {
  const json = (node: object | object[], signature = {}): ModelJson => ({
    path: "model.json",
    kind: "graph",
    weightsManifest: [],
    signature,
    content: { modelTopology: { node: [node].flat() } },
  });
  const placeholder = {
    name: "x",
    op: "Placeholder",
    attr: { dtype: { type: 9 }, shape: { shape: { dim: [{ size: -1 }, { size: "3" }] } } },
  };

  it("without a signature, has its placeholders as inputs and its last nodes as outputs", () => {
    const node = (name: string, op: string, input: readonly string[], attr = {}) => ({
      name,
      op,
      input,
      attr,
    });
    const nodes = [
      placeholder,
      node("unused", "Const", [], { dtype: { type: 1 } }),
      node("parts", "Split", ["x"], { T: { type: 9 } }),
      node("as float", "Cast", ["parts:1"], { SrcT: { type: 9 }, DstT: { type: "DT_FLOAT" } }),
      node("best", "ArgMax", ["as float", "^parts"], { T: { type: 1 }, output_type: { type: 3 } }),
      node("large", "Greater", ["as float"], { T: { type: 1 } }),
    ];
    expect(graphDescription(json(nodes))).toEqual({
      inputs: [{ name: "x", dtype: "INT64", shape: [-1, 3] }],
      outputs: [
        { name: "best", dtype: "INT32", shape: [], rankUnknown: true },
        { name: "large", dtype: "BOOL", shape: [], rankUnknown: true },
      ],
    });
  });

  it("rejects types and unknown ranks that the protocol does not have", () => {
    expect(() => tensorDataType("DT_COMPLEX64")).toThrow(
      "the protocol cannot carry TensorFlow's type DT_COMPLEX64",
    );
    const open = { ...placeholder, attr: { ...placeholder.attr, shape: { shape: { unknownRank: true } } } };
    expect(() => graphDescription(json(open))).toThrow("the rank of 'x' is unknown");
  });
});
