import { Triton, type TritonOptions } from "@tritonjs/core";
import type { Finding, ModelInspection } from "@tritonjs/core/config";

/** Loads the models of repositories. @returns the findings, with the reasons of models that did not load */
export async function loadModels(
  inspections: readonly ModelInspection[],
  repositories: readonly string[],
  options: TritonOptions,
): Promise<ModelInspection[]> {
  const logger = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
  await using triton = new Triton({ ...options, logger, modelRepository: repositories, exitOnError: false });
  await triton.ready().catch(() => {});
  const index = await triton.service.repositoryIndex(false);
  return inspections.map((inspection) => {
    const failures = index
      .filter(({ name, state }) => name === inspection.name && state !== "READY")
      .map(
        ({ version, reason }): Finding => ({
          severity: "error",
          path: inspection.directory,
          message: `${version === undefined ? "" : `version ${version} `}cannot be loaded: ${reason ?? "unknown reason"}`,
        }),
      )
      .filter(({ message }) => !inspection.findings.some((known) => message.includes(known.message)));
    return { ...inspection, findings: [...inspection.findings, ...failures] };
  });
}
