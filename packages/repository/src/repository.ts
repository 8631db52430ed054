import type { Extension } from "@tritonjs/core/extension";
import { assertOptions } from "@tritonjs/protocol";
import { repositoryFamilies } from "./loading/repository-families.js";
import { ModelRepository } from "./model-repository.js";
import { REPOSITORY_OPTION_TYPES, type RepositoryOptions } from "./repository-options.js";

/**
 * Serves the models of directories in Triton's layout, in the file system or in a cloud. With it, `triton.loadModel`,
 * `triton.registerModelRepository` and the operations of clients on models work.
 *
 * @throws TritonError INVALID_ARG for unknown options, and for values that an option cannot have
 * @example
 * ```ts
 * await using triton = new Triton({ extensions: [repository({ modelRepository: "./models" })] });
 * await triton.serve();
 * ```
 */
export function repository(options: RepositoryOptions): Extension {
  assertOptions("repository()", options, REPOSITORY_OPTION_TYPES);
  return {
    name: "repository",
    attach(server) {
      const models = new ModelRepository(options, { ...server, log: server.log("model_lifecycle") });
      const hasModels = [options.modelRepository ?? []].flat().length > 0;
      return {
        models,
        start: () => models.start(),
        drain: () => models.close(),
        close: () => models.dispose(),
        families: () => (hasModels ? repositoryFamilies(() => models.failures()) : []),
      };
    },
  };
}
