/** Ends of the file names of graphs by precision, as transformers.js names them. */
const ENDS = {
  fp32: "",
  fp16: "_fp16",
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  q4: "_q4",
  q4f16: "_q4f16",
  bnb4: "_bnb4",
} as const;

/** Precision of a graph, as in transformers.js. */
export type DecoderDtype = keyof typeof ENDS;

export const GRAPH_DTYPES = Object.keys(ENDS) as readonly DecoderDtype[];

/** Precisions by the kind of device, in the order in which it prefers them: first those that are fast and exact there. */
export const PREFERRED_DTYPES: {
  readonly cpu: readonly DecoderDtype[];
  readonly gpu: readonly DecoderDtype[];
} = {
  cpu: ["fp32", "q4", "q8", "int8", "uint8", "bnb4", "fp16", "q4f16"],
  gpu: ["fp16", "fp32", "q4f16", "q4", "bnb4", "q8", "int8", "uint8"],
};

/**
 * Places of a graph in a directory of Hugging Face, the first choice first.
 *
 * @param stems names of the graph without its precision: `model`
 */
export function graphPaths(stems: readonly string[], dtype: DecoderDtype): string[] {
  return stems.flatMap((stem) => [`${stem}${ENDS[dtype]}.onnx`, `onnx/${stem}${ENDS[dtype]}.onnx`]);
}
