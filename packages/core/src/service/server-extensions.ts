/** The protocol extensions that the service offers, in Triton's order. */
export const SERVER_EXTENSIONS: readonly string[] = [
  "classification",
  "sequence",
  "schedule_policy",
  "model_configuration",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "logging",
];
