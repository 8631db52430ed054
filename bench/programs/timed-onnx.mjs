/*
 * Runs the ONNX model of its first argument for its parent: takes batches, and answers each with the outputs and the
 * processor time in milliseconds. The parent does other work, whose processor time could not be told from the model's.
 */
import { InferenceSession, Tensor } from "onnxruntime-node";

const options = { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: "sequential" };
const session = await InferenceSession.create(process.argv[2], options);

process.on("message", async ({ x, dims }) => {
  const input = new Tensor("float32", x, dims);
  const before = process.cpuUsage();
  const { y } = await session.run({ x: input });
  const { user, system } = process.cpuUsage(before);
  process.send({ y: y.data, ms: (user + system) / 1000 });
});
