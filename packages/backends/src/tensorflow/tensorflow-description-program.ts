import { answerDescription } from "@tritonjs/core/internal/worker";
import { openModel } from "./open-model.js";
import { openRuntime } from "./tensorflow-runtime.js";
import type { TensorflowData } from "./tensorflow-worker.js";

/* The program of a worker that describes a model while the thread that started it blocks. */

await answerDescription(async (given) => {
  const data = given as TensorflowData;
  return (await openModel(await openRuntime(data.runtime, undefined), data)).description;
});
