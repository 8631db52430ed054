/** Inputs and outputs of the model, which its server and its clients share. */
export const inputs = [{ name: "values", dtype: "FP64", shape: [-1] }] as const;
export const outputs = [
  { name: "mean", dtype: "FP64", shape: [1] },
  { name: "deviation", dtype: "FP64", shape: [1] },
] as const;
