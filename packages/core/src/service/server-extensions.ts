/** The protocol extensions that the service offers, in Triton's order. */
export const SERVER_EXTENSIONS: readonly string[] = [
  "model_configuration",
  "binary_tensor_data",
  "parameters",
  "statistics",
];
