/** The protocol extensions that the service offers, in Triton's order. */
export function serverExtensions(allowsSharedMemory: boolean): string[] {
  return allowsSharedMemory ? EXTENSIONS : EXTENSIONS.filter((name) => !name.endsWith("_shared_memory"));
}

const EXTENSIONS = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "system_shared_memory",
  "cuda_shared_memory",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "logging",
];
