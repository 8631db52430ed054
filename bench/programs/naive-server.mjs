/*
 * The naive server: fastify, and `session.run` for each request on the main thread. It takes and answers the same bytes
 * as tritonjs.
 */
import fastify from "fastify";
import ort from "onnxruntime-node";
import { eventLoopDelay } from "../support/event-loop-delay.mjs";
import { onnxModels } from "../support/onnx-models.mjs";
import { answerCalls, programOptions } from "../support/program.mjs";

const { model: name } = programOptions();
const { bytes, shape } = onnxModels[name]();
const session = await ort.InferenceSession.create(bytes, { intraOpNumThreads: 1 });
const rowBytes = shape.reduce((product, dim) => product * dim, 4);

const app = fastify();
app.addContentTypeParser("application/octet-stream", { parseAs: "buffer" }, (_, body, done) =>
  done(null, body),
);
app.get("/v2/health/live", async () => "");
app.post(`/v2/models/${name}/infer`, async ({ body, headers }, reply) => {
  const headerLength = Number(headers["inference-header-content-length"]);
  const tensor = body.subarray(headerLength, headerLength + rowBytes);
  const data = new Float32Array(tensor.buffer.slice(tensor.byteOffset, tensor.byteOffset + rowBytes));
  const { y } = await session.run({ x: new ort.Tensor("float32", data, [1, ...shape]) });
  const output = Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength);
  const parameters = { binary_data_size: output.length };
  const outputs = [{ name: "y", datatype: "FP32", shape: y.dims, parameters }];
  const header = Buffer.from(JSON.stringify({ model_name: name, model_version: "1", outputs }));
  reply.header("content-type", "application/octet-stream");
  reply.header("inference-header-content-length", header.length);
  return Buffer.concat([header, output]);
});
const url = await app.listen({ host: "127.0.0.1", port: 0 });

answerCalls({ url: () => url, delay: eventLoopDelay() });
