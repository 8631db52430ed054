import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, it } from "vitest";
import {
  type OnnxElementType,
  type OnnxModel,
  type OnnxTensor,
  onnxElementTypes,
  onnxModel,
} from "../../examples/onnx-writer/onnx-writer.js";

/** A model that returns its input. */
function identityModel(elemType: OnnxElementType): OnnxModel {
  return {
    name: "identity",
    opset: 17,
    inputs: [{ name: "x", elemType, dims: ["batch", 2] }],
    outputs: [{ name: "y", elemType, dims: ["batch", 2] }],
    nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
  };
}

/** A model that returns one constant and has no inputs. */
function constantModel(tensor: OnnxTensor, elemType: OnnxElementType): OnnxModel {
  return {
    name: "constant",
    opset: 17,
    inputs: [],
    outputs: [{ name: "y", elemType, dims: tensor.dims }],
    initializers: [tensor],
    nodes: [{ op: "Identity", inputs: [tensor.name], outputs: ["y"] }],
  };
}

async function run(model: OnnxModel, feeds: Record<string, Tensor> = {}): Promise<Tensor> {
  const session = await InferenceSession.create(onnxModel(model));
  try {
    return (await session.run(feeds)).y!;
  } finally {
    await session.release();
  }
}

describe("onnxModel", () => {
  it.each<[OnnxElementType, string]>([
    ["FLOAT", "float32"],
    ["FLOAT16", "float16"],
    ["DOUBLE", "float64"],
    ["INT8", "int8"],
    ["INT16", "int16"],
    ["INT32", "int32"],
    ["INT64", "int64"],
    ["UINT8", "uint8"],
    ["UINT16", "uint16"],
    ["UINT32", "uint32"],
    ["UINT64", "uint64"],
    ["BOOL", "bool"],
    ["STRING", "string"],
  ])("declares inputs and outputs of %s", async (elemType, type) => {
    const session = await InferenceSession.create(onnxModel(identityModel(elemType)));
    const shape = ["batch", 2];
    expect(session.inputMetadata).toEqual([{ name: "x", isTensor: true, type, shape }]);
    expect(session.outputMetadata).toEqual([{ name: "y", isTensor: true, type, shape }]);
    await session.release();
  });

  it("declares BFLOAT16, which ONNX Runtime reads and its Node binding rejects by its number", async () => {
    const created = InferenceSession.create(onnxModel(identityModel("BFLOAT16")));
    await expect(created).rejects.toThrow(`Unsupported data type: ${onnxElementTypes.BFLOAT16}`);
  });

  it.each<[OnnxElementType, OnnxTensor["data"], readonly unknown[]]>([
    ["FLOAT", Float32Array.of(1.5, -2), [1.5, -2]],
    ["DOUBLE", Float64Array.of(0.1, -2), [0.1, -2]],
    ["INT8", Int8Array.of(-128, 127), [-128, 127]],
    ["INT16", Int16Array.of(-32768, 1), [-32768, 1]],
    ["INT32", Int32Array.of(-(2 ** 31), 1), [-(2 ** 31), 1]],
    ["INT64", BigInt64Array.of(-(2n ** 63n), 1n), [-(2n ** 63n), 1n]],
    ["UINT8", Uint8Array.of(255, 0), [255, 0]],
    ["UINT16", Uint16Array.of(65535, 0), [65535, 0]],
    ["UINT32", Uint32Array.of(2 ** 32 - 1, 0), [2 ** 32 - 1, 0]],
    ["UINT64", BigUint64Array.of(2n ** 64n - 1n, 0n), [2n ** 64n - 1n, 0n]],
    ["BOOL", Uint8Array.of(1, 0), [1, 0]],
    ["STRING", ["Blüte", ""], ["Blüte", ""]],
  ])("stores constants of %s", async (elemType, data, expected) => {
    const y = await run(constantModel({ name: "c", dims: [2], elemType, data }, elemType));
    expect(y.dims).toEqual([2]);
    expect(Array.from<unknown>(y.data)).toEqual(expected);
  });

  it.each<[OnnxElementType, Uint16Array]>([
    ["FLOAT16", Uint16Array.of(0x3e00, 0xc000)],
    ["BFLOAT16", Uint16Array.of(0x3fc0, 0xc000)],
  ])("stores the bit patterns of %s constants", async (elemType, data) => {
    const y = await run({
      ...constantModel({ name: "c", dims: [2], elemType, data }, "FLOAT"),
      nodes: [
        { op: "Cast", inputs: ["c"], outputs: ["y"], attributes: { to: { int: onnxElementTypes.FLOAT } } },
      ],
    });
    expect(Array.from(y.data as Float32Array)).toEqual([1.5, -2]);
  });

  it("stores only the part of a buffer that a view covers, and scalars", async () => {
    const view = Float32Array.of(1, 2, 3, 4).subarray(2, 3);
    const y = await run(constantModel({ name: "c", dims: [], data: view }, "FLOAT"));
    expect(y.dims).toEqual([]);
    expect(Array.from(y.data as Float32Array)).toEqual([3]);
  });

  it.each<[string, OnnxModel["nodes"][number]["attributes"], readonly unknown[]]>([
    ["float", { value_float: { float: 0.5 } }, [0.5]],
    ["floats", { value_floats: { floats: [0.5, -1] } }, [0.5, -1]],
    ["int", { value_int: { int: -(2n ** 63n) } }, [-(2n ** 63n)]],
    ["ints", { value_ints: { ints: [-1, 2n ** 62n] } }, [-1n, 2n ** 62n]],
    ["string", { value_string: { string: "Blüte" } }, ["Blüte"]],
    ["strings", { value_strings: { strings: ["a", "b"] } }, ["a", "b"]],
    ["tensor", { value: { tensor: { name: "", dims: [1], data: Float32Array.of(7) } } }, [7]],
  ])("writes %s attributes", async (kind, attributes, expected) => {
    const elemType = kind.startsWith("string") ? "STRING" : kind.startsWith("int") ? "INT64" : "FLOAT";
    const y = await run({
      name: "attribute",
      opset: 17,
      inputs: [],
      outputs: [{ name: "y", elemType, dims: kind.endsWith("s") ? [2] : kind === "tensor" ? [1] : [] }],
      nodes: [{ op: "Constant", inputs: [], outputs: ["y"], attributes }],
    });
    expect(Array.from<unknown>(y.data)).toEqual(expected);
  });

  it("writes graph attributes", async () => {
    const branch = (name: string, value: number) => ({
      name,
      inputs: [],
      outputs: [{ name, elemType: "FLOAT" as const, dims: [] }],
      nodes: [{ op: "Constant", inputs: [], outputs: [name], attributes: { value_float: { float: value } } }],
    });
    const model: OnnxModel = {
      name: "choice",
      opset: 17,
      inputs: [{ name: "x", elemType: "BOOL", dims: [] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: [] }],
      nodes: [
        {
          op: "If",
          inputs: ["x"],
          outputs: ["y"],
          attributes: { then_branch: { graph: branch("one", 1) }, else_branch: { graph: branch("two", 2) } },
        },
      ],
    };
    const yes = await run(model, { x: new Tensor("bool", [true], []) });
    const no = await run(model, { x: new Tensor("bool", [false], []) });
    expect([yes.data[0], no.data[0]]).toEqual([1, 2]);
  });

  it("accepts operators of other domains", async () => {
    const y = await run({
      name: "gelu",
      opset: 17,
      domains: { "com.microsoft": 1 },
      inputs: [],
      outputs: [{ name: "y", elemType: "FLOAT", dims: [1] }],
      initializers: [{ name: "c", dims: [1], data: Float32Array.of(0) }],
      nodes: [{ op: "Gelu", domain: "com.microsoft", name: "gelu", inputs: ["c"], outputs: ["y"] }],
    });
    expect(y.data[0]).toBe(0);
  });

  it("rejects data that does not match the shape or the element type", () => {
    const data = Float32Array.of(1, 2);
    expect(() => onnxModel(constantModel({ name: "c", dims: [3], data }, "FLOAT"))).toThrow(
      'tensor "c": shape [3] has 3 elements, the data has 2',
    );
    expect(() =>
      onnxModel(constantModel({ name: "c", dims: [2], data, elemType: "INT32" }, "INT32")),
    ).toThrow('tensor "c": a Float32Array cannot hold INT32');
  });
});
