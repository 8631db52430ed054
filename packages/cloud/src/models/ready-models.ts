import type { InferenceService } from "@tritonjs/core/frontend";

/** Names of the models in service, and the only one if there is exactly one. */
export async function readyModels(
  service: InferenceService,
): Promise<{ readonly names: readonly string[]; readonly only: string | undefined }> {
  const names = [...new Set((await service.repositoryIndex(true)).map(({ name }) => name))];
  return { names, only: names.length === 1 ? names[0] : undefined };
}
