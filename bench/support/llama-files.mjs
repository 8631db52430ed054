import { createCipheriv } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

/*
 * One model of Llama's architecture with random weights in two forms: a GGUF file with blocks of Q4_0 for llama.cpp, and
 * an ONNX graph with MatMulNBits and GroupQueryAttention. Both have the same weights of 4 bits and the same scales.
 */

/** 105 million parameters. */
export const SIZES = {
  width: 768,
  layers: 12,
  heads: 12,
  kvHeads: 4,
  headSize: 64,
  inner: 2048,
  vocabulary: 32_000,
  context: 4608,
};

/** Weights that share a scale in the GGUF file. */
const BLOCK = 32;
const ROPE_BASE = 10_000;
const EPSILON = 1e-5;

/** Weights of a matrix `[rows, columns]`: packed pairs of 4 bits as MatMulNBits has them, and one scale for all blocks. */
function quantizedMatrix(name, rows, columns) {
  const key = Buffer.alloc(16, name);
  const packed = createCipheriv("aes-128-ctr", key, Buffer.alloc(16)).update(
    Buffer.alloc((rows * columns) / 2),
  );
  // From -7 to 7, so that their mean is 0.
  for (let i = 0; i < packed.length; i++) {
    const byte = packed[i];
    packed[i] = ((byte & 15) === 0 ? 8 : byte & 15) | ((byte >> 4 === 0 ? 8 : byte >> 4) << 4);
  }
  // Their deviation is 4.2.
  const scale = halfOf(1 / (4.2 * Math.sqrt(columns)));
  return { name, rows, columns, packed, scale };
}

/** A number as FP16: its bits, and the number that they are. Only for positive normal numbers. */
function halfOf(value) {
  const exponent = Math.floor(Math.log2(value));
  const fraction = Math.round((value / 2 ** exponent - 1) * 1024);
  return { bits: ((exponent + 15) << 10) + fraction, value: 2 ** exponent * (1 + fraction / 1024) };
}

/** Blocks of Q4_0: a scale of FP16, then the first 16 values in the low halves of bytes and the others in the high ones. */
function q4Blocks({ packed, scale }) {
  const count = packed.length / 16;
  const blocks = Buffer.alloc(count * 18);
  for (let block = 0; block < count; block++) {
    const at = block * 18;
    blocks.writeUInt16LE(scale.bits, at);
    for (let i = 0; i < 16; i++) {
      const low = packed[block * 16 + (i >> 1)];
      const high = packed[block * 16 + 8 + (i >> 1)];
      const half = (byte) => (i % 2 === 0 ? byte & 15 : byte >> 4);
      blocks[at + 2 + i] = half(low) | (half(high) << 4);
    }
  }
  return blocks;
}

function matrices({ width, layers, heads, kvHeads, headSize, inner, vocabulary }) {
  const matrix = quantizedMatrix;
  return {
    embedding: matrix("token_embd", vocabulary, width),
    layers: Array.from({ length: layers }, (_, i) => ({
      q: matrix(`blk.${i}.attn_q`, heads * headSize, width),
      k: matrix(`blk.${i}.attn_k`, kvHeads * headSize, width),
      v: matrix(`blk.${i}.attn_v`, kvHeads * headSize, width),
      o: matrix(`blk.${i}.attn_output`, width, heads * headSize),
      gate: matrix(`blk.${i}.ffn_gate`, inner, width),
      up: matrix(`blk.${i}.ffn_up`, inner, width),
      down: matrix(`blk.${i}.ffn_down`, width, inner),
    })),
  };
}

function tokenTexts(vocabulary) {
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
  const words = Array.from({ length: vocabulary - 259 }, (_, i) => `▁w${i.toString(36)}`);
  return ["<unk>", "<s>", "</s>", ...bytes, ...words];
}

/**
 * Writes the model as `model.gguf`, and as directories for `textGeneration`: one for each number of weights that share a
 * scale. Returns their paths.
 */
export function writeLlamaFiles(folder, blocks = [BLOCK], sizes = SIZES) {
  const weights = matrices(sizes);
  const gguf = join(folder, "model.gguf");
  writeFileSync(gguf, ggufFile(weights, sizes));
  return { gguf, directories: blocks.map((block) => writeDirectory(folder, weights, block, sizes)) };
}

function writeDirectory(folder, weights, block, sizes) {
  const directory = join(folder, `onnx-int4-${block}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "model.onnx"), onnxFile(weights, block, sizes));
  const { vocabulary, context, kvHeads, heads, width, headSize } = sizes;
  const json = (name, value) => writeFileSync(join(directory, name), JSON.stringify(value));
  json("config.json", {
    model_type: "llama",
    max_position_embeddings: context,
    num_key_value_heads: kvHeads,
    num_attention_heads: heads,
    hidden_size: width,
    head_dim: headSize,
    eos_token_id: 2,
  });
  const texts = tokenTexts(vocabulary);
  json("tokenizer.json", {
    version: "1.0",
    added_tokens: texts.slice(0, 3).map((content, id) => ({ id, content, special: true })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }] },
    model: {
      type: "BPE",
      unk_token: "<unk>",
      byte_fallback: true,
      vocab: Object.fromEntries(texts.map((text, id) => [text, id])),
      merges: [],
    },
  });
  return directory;
}

function ggufFile(weights, { width, layers, heads, kvHeads, headSize, inner, vocabulary, context }) {
  const texts = tokenTexts(vocabulary);
  const kinds = texts.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1));
  const metadata = [
    ["general.architecture", "llama"],
    ["general.file_type", 2],
    ["llama.context_length", context],
    ["llama.embedding_length", width],
    ["llama.block_count", layers],
    ["llama.feed_forward_length", inner],
    ["llama.attention.head_count", heads],
    ["llama.attention.head_count_kv", kvHeads],
    ["llama.rope.dimension_count", headSize],
    ["llama.rope.freq_base", Float32Array.of(ROPE_BASE)],
    ["llama.attention.layer_norm_rms_epsilon", Float32Array.of(EPSILON)],
    ["tokenizer.ggml.model", "llama"],
    ["tokenizer.ggml.tokens", texts],
    ["tokenizer.ggml.scores", texts.map((_, id) => Float32Array.of(-id))],
    ["tokenizer.ggml.token_type", kinds.map((kind) => Int32Array.of(kind))],
    ["tokenizer.ggml.unknown_token_id", 0],
    ["tokenizer.ggml.bos_token_id", 1],
    ["tokenizer.ggml.eos_token_id", 2],
  ];
  const ones = (name) => ({
    name: `${name}.weight`,
    shape: [width],
    type: 0,
    data: Buffer.from(new Float32Array(width).fill(1).buffer),
  });
  const quantized = (one) => ({
    name: `${one.name}.weight`,
    shape: [one.columns, one.rows],
    type: 2,
    data: q4Blocks(one),
  });
  const tensors = [
    quantized(weights.embedding),
    ...weights.layers.flatMap((layer, i) => [
      ones(`blk.${i}.attn_norm`),
      ones(`blk.${i}.ffn_norm`),
      ...Object.values(layer).map(quantized),
    ]),
    ones("output_norm"),
  ];
  const parts = [];
  let size = 0;
  const add = (...buffers) => {
    for (const buffer of buffers) {
      parts.push(buffer);
      size += buffer.length;
    }
  };
  const uint32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
  const uint64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
  const string = (text) => Buffer.concat([uint64(Buffer.byteLength(text)), Buffer.from(text)]);
  const element = (one) => {
    if (typeof one === "string") return [8, string(one)];
    if (typeof one === "number") return [4, uint32(one)];
    return [one instanceof Float32Array ? 6 : 5, Buffer.from(one.buffer)];
  };
  add(Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(metadata.length));
  for (const [key, value] of metadata) {
    if (!Array.isArray(value)) {
      const [type, bytes] = element(value);
      add(string(key), uint32(type), bytes);
      continue;
    }
    const elements = value.map(element);
    add(
      string(key),
      uint32(9),
      uint32(elements[0][0]),
      uint64(value.length),
      ...elements.map(([, bytes]) => bytes),
    );
  }
  const aligned = (length) => Math.ceil(length / 32) * 32;
  let offset = 0;
  for (const { name, shape, type, data } of tensors) {
    add(string(name), uint32(shape.length), ...shape.map(uint64), uint32(type), uint64(offset));
    offset += aligned(data.length);
  }
  add(Buffer.alloc(aligned(size) - size));
  for (const { data } of tensors) add(data, Buffer.alloc(aligned(data.length) - data.length));
  return Buffer.concat(parts);
}

function onnxFile(weights, block, { width, heads, kvHeads, headSize, vocabulary, context }) {
  const nodes = [];
  const initializers = [];
  const add = (op, inputs, outputs, attributes = {}, domain = "") => {
    const own = Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [
        key,
        Number.isInteger(value) ? { int: value } : { float: value },
      ]),
    );
    nodes.push({ op, inputs, outputs, attributes: own, ...(domain !== "" && { domain }) });
    return outputs[0];
  };
  const microsoft = (op, inputs, outputs, attributes) =>
    add(op, inputs, outputs, attributes, "com.microsoft");
  const constant = (name, dims, data, elemType = "FLOAT") => {
    initializers.push({ name, dims, data, elemType });
    return name;
  };
  const scales = (one, dims) =>
    constant(
      `${one.name}.scales`,
      dims,
      new Float32Array((one.rows * one.columns) / block).fill(one.scale.value),
    );
  const multiply = (x, one, output) => {
    const dims = [one.rows, one.columns / block, block / 2];
    const inputs = [
      x,
      constant(`${one.name}.q4`, dims, new Uint8Array(one.packed), "UINT8"),
      scales(one, [one.rows, one.columns / block]),
    ];
    // Level 4 computes with activations of 8 bits, as llama.cpp does.
    return microsoft("MatMulNBits", inputs, [output], {
      K: one.columns,
      N: one.rows,
      bits: 4,
      block_size: block,
      accuracy_level: 4,
    });
  };
  const norm = constant("norm", [width], new Float32Array(width).fill(1));

  const angles = Array.from({ length: context * (headSize / 2) }, (_, i) => {
    const position = Math.floor(i / (headSize / 2));
    return position * ROPE_BASE ** ((-2 * (i % (headSize / 2))) / headSize);
  });
  const table = [context, headSize / 2];
  constant("cos", table, Float32Array.from(angles, Math.cos));
  constant("sin", table, Float32Array.from(angles, Math.sin));
  constant("one", [1], BigInt64Array.of(1n), "INT64");
  constant("axis", [], BigInt64Array.of(1n), "INT64");
  add("ReduceSum", ["attention_mask", "one"], ["lengths"], { keepdims: 0 });
  add("Sub", ["lengths", "one"], ["last"]);
  add("Cast", ["last"], ["seqlens_k"], { to: 6 });
  add("Shape", ["attention_mask"], ["mask_shape"]);
  add("Gather", ["mask_shape", "axis"], ["total"]);
  add("Cast", ["total"], ["total_sequence_length"], { to: 6 });
  const { embedding } = weights;
  const table4 = constant(
    "token_embd.table",
    [vocabulary, width / 2],
    new Uint8Array(embedding.packed),
    "UINT8",
  );
  let x = microsoft(
    "GatherBlockQuantized",
    [table4, "input_ids", scales({ ...embedding, name: "token_embd.table" }, [vocabulary, width / block])],
    ["x"],
    { bits: 4, block_size: block, gather_axis: 0, quantize_axis: 1 },
  );
  const inputs = [
    { name: "input_ids", elemType: "INT64", dims: ["batch_size", "sequence_length"] },
    { name: "attention_mask", elemType: "INT64", dims: ["batch_size", "total_sequence_length"] },
    { name: "num_logits_to_keep", elemType: "INT64", dims: [] },
  ];
  const outputs = [{ name: "logits", elemType: "FLOAT", dims: ["batch_size", "kept", vocabulary] }];
  let residual;
  for (const [i, layer] of weights.layers.entries()) {
    const own = (name) => `${name}.${i}`;
    const normalize = (from, name) => {
      if (residual === undefined) {
        residual = from;
        return add("SimplifiedLayerNormalization", [from, norm], [own(name)], { epsilon: EPSILON, axis: -1 });
      }
      microsoft(
        "SkipSimplifiedLayerNormalization",
        [from, residual, norm],
        [own(name), "", "", own(`${name}.sum`)],
        { epsilon: EPSILON },
      );
      residual = own(`${name}.sum`);
      return own(name);
    };
    x = normalize(x, "attn_norm");
    const [q, k, v] = ["q", "k", "v"].map((name) => multiply(x, layer[name], own(name)));
    const past = ["key", "value"].map((kind) => `past_key_values.${i}.${kind}`);
    const present = ["key", "value"].map((kind) => `present.${i}.${kind}`);
    for (const name of past)
      inputs.push({
        name,
        elemType: "FLOAT",
        dims: ["batch_size", kvHeads, "past_sequence_length", headSize],
      });
    for (const name of present)
      outputs.push({
        name,
        elemType: "FLOAT",
        dims: ["batch_size", kvHeads, "total_sequence_length", headSize],
      });
    microsoft(
      "GroupQueryAttention",
      [q, k, v, ...past, "seqlens_k", "total_sequence_length", "cos", "sin"],
      [own("attended"), ...present],
      { num_heads: heads, kv_num_heads: kvHeads, do_rotary: 1, rotary_interleaved: 1 },
    );
    x = normalize(multiply(own("attended"), layer.o, own("o")), "ffn_norm");
    const [gate, up] = ["gate", "up"].map((name) => multiply(x, layer[name], own(name)));
    add("Sigmoid", [gate], [own("sigmoid")]);
    add("Mul", [gate, own("sigmoid")], [own("silu")]);
    add("Mul", [own("silu"), up], [own("wide")]);
    x = multiply(own("wide"), layer.down, own("down"));
  }
  microsoft("SkipSimplifiedLayerNormalization", [x, residual, norm], ["hidden"], { epsilon: EPSILON });
  // Only the last columns get logits.
  constant("end", [1], BigInt64Array.of(2n ** 62n), "INT64");
  add("Neg", ["num_logits_to_keep"], ["begin"]);
  add("Reshape", ["begin", "one"], ["begins"]);
  add("Slice", ["hidden", "begins", "end", "one"], ["kept"]);
  multiply("kept", embedding, "logits");
  return onnxModel({
    name: "llama",
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs,
    outputs,
    nodes,
    initializers,
  });
}
