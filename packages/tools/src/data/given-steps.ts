import type { DataOptions } from "./data-options.js";
import type { Steps } from "./steps.js";
import type { TestedModel } from "./tested-model.js";
export async function givenSteps(
  _model: TestedModel,
  _paths: readonly string[],
  _options: DataOptions,
): Promise<Steps> {
  throw new Error("not yet");
}
