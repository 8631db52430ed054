import { type GgufTensor, writeGguf } from "../../../../../examples/llama-cpp/gguf-writer.js";
import { llamaHeader } from "../../../../../examples/llama-cpp/tiny-llama.js";

/** What a scripted model writes after any prompt, token by token. */
export interface LlamaScript {
  readonly template: string;
  readonly pieces: readonly string[];
  /** Pieces that are special tokens of the model. */
  readonly special?: readonly string[];
}

export const BYTE_TOKENS = [
  ...["<unk>", "<s>", "</s>"],
  ...Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`),
];

const [NORMAL, UNKNOWN, CONTROL, BYTE] = [1, 2, 3, 6];
const [WIDTH, INNER, CONTEXT] = [64, 32, 512];

/**
 * A GGUF file whose model writes the pieces one after the other, and then ends. Its layer adds nothing, so the scores
 * depend on the last token alone: each piece has a direction of its own, and the output looks for the one before.
 */
export function scriptedLlama({ template, pieces, special = [] }: LlamaScript): Buffer {
  const tokens = [...BYTE_TOKENS, ...pieces.map((piece) => piece.replaceAll(" ", "▁"))];
  const kindOf = (piece: string) => (special.includes(piece) ? CONTROL : NORMAL);
  const kinds = [UNKNOWN, CONTROL, CONTROL, ...new Array<number>(256).fill(BYTE), ...pieces.map(kindOf)];
  const embedding = new Float32Array(WIDTH * tokens.length);
  const output = new Float32Array(WIDTH * tokens.length);
  for (const [id] of tokens.entries()) embedding[id * WIDTH + Math.max(0, id - BYTE_TOKENS.length + 1)] = 1;
  for (const [i] of pieces.entries()) output[(BYTE_TOKENS.length + i) * WIDTH + i] = 8;
  output[2 * WIDTH + pieces.length] = 8;
  const matrix = (name: string, ...shape: [number, number]): GgufTensor => ({
    name,
    shape,
    data: new Float32Array(shape[0] * shape[1]),
  });
  const ones = (name: string): GgufTensor => ({
    name,
    shape: [WIDTH],
    data: new Float32Array(WIDTH).fill(1),
  });
  const shape = { name: "scripted", width: WIDTH, inner: INNER, layers: 1, heads: 4, context: CONTEXT };
  return writeGguf(llamaHeader(shape, { tokens, kinds, template }), [
    { name: "token_embd.weight", shape: [WIDTH, tokens.length], data: embedding },
    ones("blk.0.attn_norm.weight"),
    ...["q", "k", "v", "output"].map((part) => matrix(`blk.0.attn_${part}.weight`, WIDTH, WIDTH)),
    ones("blk.0.ffn_norm.weight"),
    matrix("blk.0.ffn_gate.weight", WIDTH, INNER),
    matrix("blk.0.ffn_up.weight", WIDTH, INNER),
    matrix("blk.0.ffn_down.weight", INNER, WIDTH),
    ones("output_norm.weight"),
    { name: "output.weight", shape: [WIDTH, tokens.length], data: output },
  ]);
}
