import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { onnxModel } from "../../../examples/onnx-writer/onnx-writer.js";
import { describeOnnxModel } from "../../../packages/backends/src/onnxruntime/describe-onnx-model.js";
import { externalLocations } from "../../../packages/backends/src/onnxruntime/onnx-file.js";
import { identityOnnx, matrixOnnx } from "../../support/onnx-models.js";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { protobuf } from "../structures/protobuf.js";

/** What is read of ONNX files: inputs, outputs, and the names of files with weights. Bytes and file read the same. */
export function open(): FuzzTarget {
  const path = join(tmpdir(), `tritonjs-fuzz-${process.pid}.onnx`);
  const strings = onnxModel({
    name: "n",
    opset: 17,
    inputs: [{ name: "x", elemType: "STRING", dims: ["batch", -1 as never, 3] }],
    outputs: [{ name: "y", elemType: "STRING", dims: [] }],
    nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
  });
  return {
    seeds: [identityOnnx("FLOAT", [1, "n"]), identityOnnx("STRING", []), matrixOnnx(), strings],
    structure: protobuf,
    tokens: [
      "location",
      "offset",
      "length",
      "../x",
      "/etc/passwd",
      "\u0000",
      Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f),
    ],
    run(input) {
      const outcomes = [outcomeOf(() => describeOnnxModel(Buffer.from(input)))];
      writeFileSync(path, input);
      outcomes.push(outcomeOf(() => describeOnnxModel(path)));
      const [fromBytes, fromFile] = outcomes;
      expectThat(
        isDeepStrictEqual(fromBytes, fromFile),
        () => `bytes: ${JSON.stringify(fromBytes)}, file: ${JSON.stringify(fromFile)}`,
      );
      const external = outcomeOf(() => [...externalLocations(path)].length);
      return `${typeof fromBytes === "string" ? fromBytes : "described"}, weights ${external}`;
    },
    check: () => void readFileSync(path),
    close: () => rmSync(path, { force: true }),
  };
}

function outcomeOf<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    return refusalOf(error);
  }
}
