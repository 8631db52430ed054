import { answerDescription } from "@tritonjs/core/internal/worker";
import { describeOnnxModel } from "./describe-onnx-model.js";
import type { SessionData } from "./ort-session.js";
import type { SessionTensors } from "./ort-tensors.js";
import { open } from "./session-worker.js";

/* The program of a worker that describes a model while the thread that started it blocks. */

await answerDescription(async (given) => {
  const data = given as SessionData;
  const opened = await open(data, { warn: () => {} });
  await opened.close();
  return describeOnnxModel(data.model, opened.description as SessionTensors | undefined);
});
