import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { root } from "../../scripts/run.mjs";

const fromPackage = createRequire(join(root, "packages", "llm", "package.json"));
const { Tokenizer } = fromPackage("@huggingface/tokenizers");

/**
 * The loop that one writes first: a text at a time, greedy, with keys and values kept between steps, on this thread.
 */
export async function naiveDecoder(directory) {
  const read = (name) => JSON.parse(readFileSync(join(directory, name), "utf8"));
  const session = await InferenceSession.create(join(directory, "model.onnx"), {
    // More threads make a small model slower.
    intraOpNumThreads: 1,
  });
  const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
  const { num_key_value_heads: heads, head_dim: size } = read("config.json");
  const pastNames = session.inputNames.filter((name) => name.startsWith("past_key_values."));
  const integers = (values) => new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
  const textStep = async (tokens, from, past) => {
    const outputs = await session.run({
      input_ids: integers(tokens.slice(from)),
      attention_mask: integers(tokens.map(() => 1)),
      position_ids: integers(tokens.slice(from).map((_, i) => from + i)),
      ...past,
    });
    const scores = outputs.logits.data.subarray(-outputs.logits.dims[2]);
    let best = 0;
    for (let id = 1; id < scores.length; id++) if (scores[id] > scores[best]) best = id;
    const next = pastNames.map((name) => [name, outputs[name.replace("past_key_values", "present")]]);
    return { token: best, past: Object.fromEntries(next) };
  };
  return {
    /** @returns the tokens and the milliseconds until the first */
    async generate(prompt, count) {
      const started = performance.now();
      const tokens = [...tokenizer.encode(prompt).ids];
      let past = Object.fromEntries(
        pastNames.map((name) => [name, new Tensor("float32", [], [1, heads, 0, size])]),
      );
      let from = 0;
      let firstMs;
      for (let i = 0; i < count; i++) {
        const step = await textStep(tokens, from, past);
        firstMs ??= performance.now() - started;
        past = step.past;
        from = tokens.length;
        tokens.push(step.token);
      }
      return {
        text: tokenizer.decode(tokens.slice(-count), { skip_special_tokens: true }),
        firstMs,
        ms: performance.now() - started,
      };
    },
    release: () => session.release(),
  };
}
