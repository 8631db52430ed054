import type { Triton, TritonOptions } from "@tritonjs/core";
import type { RepositoryOptions } from "@tritonjs/repository";

/**
 * Makes a server of this process for the models of a repository, with the extensions by which the parameters of a model
 * have the same effect as in `tritonjs serve`: GPUs, deadlines and shares. They are loaded when the first server is made.
 */
export async function repositoryServer(
  models: RepositoryOptions,
  options: TritonOptions = {},
): Promise<Triton> {
  const [{ Triton }, { repository }, { gpu }, { scheduling }] = await Promise.all([
    import("@tritonjs/core"),
    import("@tritonjs/repository"),
    import("@tritonjs/backends/gpu"),
    import("@tritonjs/scheduling"),
  ]);
  return new Triton({ ...options, extensions: [repository(models), gpu(), scheduling()] });
}
