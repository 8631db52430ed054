import { type GgufTensor, writeGguf } from "./gguf-writer.js";

const [WIDTH, LAYERS, HEADS, INNER, CONTEXT] = [64, 2, 4, 128, 512];

const CHAT_TEMPLATE =
  "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: ";

/** Kinds of tokens in llama.cpp. */
const [NORMAL, UNKNOWN, CONTROL, BYTE] = [1, 2, 3, 6];

/**
 * A model of Llama's architecture in 0.4 MB, with random weights: it writes nonsense, and equal nonsense for equal
 * input. It stands for a real one, which is a download of gigabytes.
 */
export function tinyLlama(): Buffer {
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
  const pieces = [..."▁etaoinshrdlucmfw", "▁the", "▁a", "▁of", "ing", "er", "ed", "on", "▁to", "▁in", "▁is"];
  const tokens = ["<unk>", "<s>", "</s>", ...bytes, ...pieces];
  const kinds = [UNKNOWN, CONTROL, CONTROL, ...bytes.map(() => BYTE), ...pieces.map(() => NORMAL)];
  const random = randomTensors();
  const tensors = [
    random("token_embd.weight", WIDTH, tokens.length),
    ...Array.from({ length: LAYERS }, (_, i) => [
      ones(`blk.${i}.attn_norm.weight`),
      random(`blk.${i}.attn_q.weight`, WIDTH, WIDTH),
      random(`blk.${i}.attn_k.weight`, WIDTH, WIDTH),
      random(`blk.${i}.attn_v.weight`, WIDTH, WIDTH),
      random(`blk.${i}.attn_output.weight`, WIDTH, WIDTH),
      ones(`blk.${i}.ffn_norm.weight`),
      random(`blk.${i}.ffn_gate.weight`, WIDTH, INNER),
      random(`blk.${i}.ffn_up.weight`, WIDTH, INNER),
      random(`blk.${i}.ffn_down.weight`, INNER, WIDTH),
    ]).flat(),
    ones("output_norm.weight"),
    random("output.weight", WIDTH, tokens.length),
  ];
  const shape = { name: "tiny", width: WIDTH, inner: INNER, layers: LAYERS, heads: HEADS, context: CONTEXT };
  return writeGguf(llamaHeader(shape, { tokens, kinds, template: CHAT_TEMPLATE }), tensors);
}

interface LlamaShape {
  readonly name: string;
  readonly width: number;
  readonly inner: number;
  readonly layers: number;
  readonly heads: number;
  readonly context: number;
}

interface LlamaTexts {
  /** The tokens `<unk>`, `<s>` and `</s>`, then all others. */
  readonly tokens: readonly string[];
  /** Kind of each token in llama.cpp. */
  readonly kinds: readonly number[];
  /** Template of chats. */
  readonly template: string;
}

/** The header of a GGUF file of Llama's architecture. */
export function llamaHeader(
  { name, width, inner, layers, heads, context }: LlamaShape,
  { tokens, kinds, template }: LlamaTexts,
): Parameters<typeof writeGguf>[0] {
  const uint32 = (value: number) => ({ type: "uint32", value }) as const;
  const text = (value: string) => ({ type: "string", value }) as const;
  return {
    "general.architecture": text("llama"),
    "general.name": text(name),
    "llama.context_length": uint32(context),
    "llama.embedding_length": uint32(width),
    "llama.block_count": uint32(layers),
    "llama.feed_forward_length": uint32(inner),
    "llama.attention.head_count": uint32(heads),
    "llama.attention.head_count_kv": uint32(heads),
    "llama.rope.dimension_count": uint32(width / heads),
    "llama.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-5 },
    "tokenizer.ggml.model": text("llama"),
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.scores": { type: "float32s", value: tokens.map((_, i) => -i) },
    "tokenizer.ggml.token_type": { type: "int32s", value: kinds },
    "tokenizer.ggml.unknown_token_id": uint32(0),
    "tokenizer.ggml.bos_token_id": uint32(1),
    "tokenizer.ggml.eos_token_id": uint32(2),
    "tokenizer.chat_template": text(template),
  };
}

function ones(name: string): GgufTensor {
  return { name, shape: [WIDTH], data: new Float32Array(WIDTH).fill(1) };
}

/** Makes tensors of repeatable random numbers (a linear congruential generator). */
function randomTensors() {
  let state = 7;
  return (name: string, ...shape: number[]): GgufTensor => {
    const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let i = 0; i < data.length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      data[i] = (state / 2 ** 32 - 0.5) * 0.5;
    }
    return { name, shape, data };
  };
}
