/** The protocol extensions that the service offers, in Triton's order. */
export function serverExtensions(allowsSharedMemory: boolean, traces: boolean): string[] {
  return EXTENSIONS.filter(
    (name) => (allowsSharedMemory || !name.endsWith("_shared_memory")) && (traces || name !== "trace"),
  );
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
  "trace",
  "logging",
];
