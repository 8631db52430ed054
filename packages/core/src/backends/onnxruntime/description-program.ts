import { answerDescription } from "../describe-in-worker.js";
import type { SessionData } from "./create-session.js";
import { describeOnnxModel } from "./describe-model.js";
import { open } from "./session-model.js";
import type { SessionTensors } from "./session-tensors.js";

/* The program of a worker that describes a model while the thread that started it blocks. */

await answerDescription(async (given) => {
  const data = given as SessionData;
  const opened = await open(data, { warn: () => {} });
  await opened.close();
  return describeOnnxModel(data.model, opened.description as SessionTensors | undefined);
});
