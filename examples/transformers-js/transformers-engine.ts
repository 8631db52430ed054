import {
  AutoModelForCausalLM,
  AutoTokenizer,
  env,
  InterruptableStoppingCriteria,
  type PreTrainedTokenizer,
  TextStreamer,
} from "@huggingface/transformers";
import {
  type GeneratorRequest,
  type TextFinishReason,
  textGenerator,
  type YieldedPiece,
} from "@tritonjs/llm";

/** Options of {@link openTransformers}. */
export interface TransformersOptions {
  /** Folder of models. */
  readonly folder: string;
  /** Folder of the model in it, with `config.json`, `tokenizer.json` and `model.onnx`. */
  readonly model: string;
}

/**
 * Opens a model with transformers.js. `inferFunc` goes to `bind`. The engine generates one text at a time, on this
 * thread, so `concurrency` is 1 and other requests wait in the queue of the model.
 */
export async function openTransformers({ folder, model: name }: TransformersOptions) {
  env.allowRemoteModels = false;
  env.localModelPath = folder;
  const tokenizer = await AutoTokenizer.from_pretrained(name);
  const model = await AutoModelForCausalLM.from_pretrained(name, { dtype: "fp32", subfolder: "" });

  async function* generate(request: GeneratorRequest, { signal }: { readonly signal: AbortSignal }) {
    const inputs = encode(tokenizer, request);
    const stopping = new InterruptableStoppingCriteria();
    const stop = () => stopping.interrupt();
    signal.addEventListener("abort", stop, { once: true });
    const { sampling } = request;
    const { maxTokens = 128, temperature = 1 } = sampling;
    let tokens = 0;
    let running: Promise<unknown> = Promise.resolve();
    const pieces = new ReadableStream<YieldedPiece>({
      start(controller) {
        const streamer = new TextStreamer(tokenizer, {
          skip_prompt: true,
          skip_special_tokens: true,
          token_callback_function: () => void tokens++,
          callback_function: (text) => controller.enqueue({ text, tokens: text === "" ? 0 : 1 }),
        });
        running = model
          .generate({
            ...inputs,
            max_new_tokens: maxTokens,
            do_sample: temperature > 0,
            ...(temperature > 0 && { temperature }),
            ...(sampling.topK !== undefined && { top_k: sampling.topK }),
            ...(sampling.topP !== undefined && { top_p: sampling.topP }),
            streamer,
            stopping_criteria: [stopping],
          })
          .then(() => controller.close())
          .catch((error: unknown) => controller.error(error));
      },
      cancel: stop,
    });
    try {
      yield* pieces;
      const finishReason: TextFinishReason = tokens >= maxTokens ? "length" : "stop";
      yield { finishReason, usage: { promptTokens: inputs.input_ids.dims[1]!, completionTokens: tokens } };
    } finally {
      await running;
      signal.removeEventListener("abort", stop);
    }
  }
  return { inferFunc: textGenerator(generate, { concurrency: 1 }), close: () => model.dispose() };
}

function encode(tokenizer: PreTrainedTokenizer, { messages, prompt }: GeneratorRequest) {
  if (messages === undefined) return tokenizer(prompt!);
  const text = tokenizer.apply_chat_template(
    messages as Parameters<typeof tokenizer.apply_chat_template>[0],
    {
      tokenize: false,
      add_generation_prompt: true,
    },
  ) as string;
  return tokenizer(text, { add_special_tokens: false });
}
