import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { InferenceSession, Tensor } from "onnxruntime-node";

/**
 * The oracle: a greedy loop without keys and values of past tokens, without batches, and without any code of the
 * library.
 */
export class UncachedDecoder {
  /** Tokens that were generated, by prompt. */
  readonly #known = new Map<string, number[]>();

  private constructor(
    private readonly session: InferenceSession,
    readonly tokenizer: Tokenizer,
    private readonly empty: Readonly<Record<string, Tensor>>,
    private readonly end: ReadonlySet<number>,
  ) {}

  static async open(directory: string): Promise<UncachedDecoder> {
    const read = (name: string) => JSON.parse(readFileSync(join(directory, name), "utf8"));
    const session = await InferenceSession.create(join(directory, "model.onnx"), { intraOpNumThreads: 1 });
    const config = read("config.json");
    const shape = [1, config.num_key_value_heads, 0, config.head_dim];
    const past = session.inputNames.filter((name) => name.startsWith("past_key_values."));
    const empty = Object.fromEntries(past.map((name) => [name, new Tensor("float32", [], shape)]));
    const end: number | number[] = read("generation_config.json").eos_token_id;
    const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
    return new UncachedDecoder(session, tokenizer, empty, new Set([end].flat()));
  }

  /** The tokens that follow a prompt, the end token included. */
  async generate(prompt: readonly number[], count: number): Promise<number[]> {
    const key = `${prompt}`;
    const known = this.#known.get(key) ?? [];
    const isOver = known.length > 0 && this.end.has(known.at(-1)!);
    if (known.length >= count || isOver) return known.slice(0, count);
    const tokens = [...prompt, ...known];
    while (tokens.length - prompt.length < count) {
      const next = await this.#next(tokens);
      tokens.push(next);
      if (this.end.has(next)) break;
    }
    this.#known.set(key, tokens.slice(prompt.length));
    return tokens.slice(prompt.length);
  }

  /** The text that follows a prompt. */
  async text(prompt: string, count: number): Promise<string> {
    const tokens = await this.generate(this.tokenizer.encode(prompt).ids, count);
    return this.tokenizer.decode(tokens, { skip_special_tokens: true });
  }

  async #next(tokens: readonly number[]): Promise<number> {
    const integers = (values: readonly number[]) =>
      new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const { logits } = await this.session.run({
      input_ids: integers(tokens),
      attention_mask: integers(tokens.map(() => 1)),
      ...(this.session.inputNames.includes("position_ids") && {
        position_ids: integers(tokens.map((_, i) => i)),
      }),
      ...this.empty,
    });
    const scores = (logits!.data as Float32Array).slice(-logits!.dims[2]!);
    return scores.indexOf(Math.max(...scores));
  }

  release(): Promise<void> {
    return this.session.release();
  }
}
