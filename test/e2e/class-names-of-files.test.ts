import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { createClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { expect, it } from "vitest";
import { identityOnnx, withMetadata } from "../support/onnx-models.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

const model = withMetadata(identityOnnx("FLOAT", ["batch", 2]), { names: "{0: 'cat', 1: 'dog'}" });

it("classification names the classes of an ONNX file, unless bind or a label file names them", async () => {
  await using repository = await RepositoryOnDisk.create({
    "stored/1/model.onnx": model,
    "written/1/model.onnx": model,
    "written/labels.txt": "no\nyes\n",
    "written/config.pbtxt": `max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 2 }
      output { name: "y" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }`,
  });
  await using triton = new Triton({ modelRepository: repository.path });
  triton.bind({ modelName: "bound", inferFunc: onnxruntime({ model }) });
  triton.bind({
    modelName: "given",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [2], labels: ["no", "yes"] }],
    inferFunc: onnxruntime({ model }),
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  await using client = createClient(addresses.http!.url);
  const labels = ["bound", "given", "stored", "written"].map(async (name) => {
    const [best] = await client.model(name).classify("y", { x: [1, 2] });
    return best!.label;
  });
  expect(await Promise.all(labels)).toEqual(["dog", "yes", "dog", "yes"]);
});
