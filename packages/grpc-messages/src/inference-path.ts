/** The path of a method of the inference service. */
export function inferencePath(name: string): string {
  return `/inference.GRPCInferenceService/${name}`;
}
