import type { PinnedModel } from "@tritonjs/core/frontend";
import { StopTexts } from "@tritonjs/text-generation";
import type { Sampling } from "../fields/sampling-fields.js";
import { type TextCall, textInputs } from "../model/text-inputs.js";
import type { TextModel } from "../model/text-model.js";
import type { OpenAiExchange } from "./exchange.js";
import type { ChoiceRequest, GenerationPlan } from "./generation.js";
import type { ToolCallText } from "./text-choice.js";

/** A call of a model for one prompt or one chat. */
export interface PromptCall extends TextCall {
  /** Number of choices for it. */
  readonly choices: number;
  /** Makes a reader of the calls in the text of a choice, if the server has to read them. */
  readonly toolCalls?: (() => ToolCallText | undefined) | undefined;
  /** True if the request names the tool to call. */
  readonly isCallNamed?: boolean | undefined;
}

/** Plans a request to the model for each choice of each prompt. Choices of one prompt have seeds in a row. */
export function planGeneration(
  exchange: OpenAiExchange,
  pinned: PinnedModel,
  model: TextModel,
  calls: readonly PromptCall[],
): GenerationPlan {
  const withoutEffect = (field: string) => exchange.warnings.withoutEffect(model.name, field);
  const choices: ChoiceRequest[] = [];
  for (const [prompt, call] of calls.entries()) {
    for (let choice = 0; choice < call.choices; choice++) {
      const sampling = seeded(call.sampling, choice);
      const tensors = textInputs(model, { ...call, sampling }, withoutEffect);
      const { isCallNamed } = call;
      const filters = { stops: stopsFor(model, sampling), toolCalls: call.toolCalls?.(), isCallNamed };
      choices.push({ ...tensors, prompt, filters });
    }
  }
  return { pinned, model, choices };
}

function seeded(sampling: Sampling, choice: number): Sampling {
  if (choice === 0 || typeof sampling.seed !== "number") return sampling;
  return { ...sampling, seed: sampling.seed + choice };
}

/** Models with `sampling_parameters` look for stop strings themselves. */
function stopsFor(model: TextModel, { stop, include_stop_str_in_output }: Sampling): StopTexts | undefined {
  if (stop === undefined || model.inputs.has("sampling_parameters")) return undefined;
  return new StopTexts(stop as readonly string[], include_stop_str_in_output === true);
}
