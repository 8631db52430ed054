import type { ModelVersion } from "@tritonjs/core/extension";
import { errorFor, type ModelConfig } from "@tritonjs/protocol";

/**
 * Checks that two versions take and return the same tensors: requests are decoded before one of them is chosen.
 *
 * @throws TritonError INVALID_ARG with each difference
 */
export function assertSameTensors(old: ModelVersion, fresh: ModelVersion): void {
  const differences = [
    ...differencesOf("input", old.config, fresh.config),
    ...differencesOf("output", old.config, fresh.config),
  ];
  const compare = (what: string, a: unknown, b: unknown) => {
    if (a !== b) differences.push(`${what}: expected ${a}, got ${b}`);
  };
  compare("maximum batch size", old.config.maxBatchSize > 0, fresh.config.maxBatchSize > 0);
  compare(
    "decoupled",
    old.config.modelTransactionPolicy?.decoupled === true,
    fresh.config.modelTransactionPolicy?.decoupled === true,
  );
  compare(
    "sequences",
    old.config.sequenceBatching !== undefined,
    fresh.config.sequenceBatching !== undefined,
  );
  if (differences.length === 0) return;
  throw errorFor(
    "INVALID_ROLLOUT",
    `cannot roll out version ${fresh.version} of model '${old.name}': it differs from version ${old.version}: ` +
      differences.join("; "),
  );
}

function differencesOf(kind: "input" | "output", old: ModelConfig, fresh: ModelConfig): string[] {
  const [before, now] = [old[kind], fresh[kind]];
  const shown = ({ dataType, dims }: { dataType: string; dims: readonly number[] }) =>
    `${dataType.replace(/^TYPE_/, "")} [${dims.join(", ")}]`;
  const lost = before.flatMap((tensor) => {
    const other = now.find(({ name }) => name === tensor.name);
    if (other === undefined) return [`${kind} '${tensor.name}': expected ${shown(tensor)}, got none`];
    return shown(other) === shown(tensor)
      ? []
      : [`${kind} '${tensor.name}': expected ${shown(tensor)}, got ${shown(other)}`];
  });
  const added = now
    .filter(({ name }) => !before.some((tensor) => tensor.name === name))
    .map((tensor) => `${kind} '${tensor.name}': expected none, got ${shown(tensor)}`);
  return [...lost, ...added];
}

/** @throws TritonError INVALID_ARG for a model whose requests cannot be copied */
export function assertShadows({ name, config }: ModelVersion): void {
  const why =
    config.sequenceBatching !== undefined
      ? "it has sequences"
      : config.modelTransactionPolicy?.decoupled === true
        ? "it is decoupled"
        : undefined;
  if (why === undefined) return;
  throw errorFor("INVALID_ROLLOUT", `requests to model '${name}' cannot have shadows: ${why}`);
}
