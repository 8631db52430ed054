import { isDecoupled, type ModelConfig } from "@tritonjs/protocol";

/** Parameter of a model configuration that enables adaptive batching. Triton has no field for it. */
const TARGET_LATENCY = "target_latency_ms";

/** Latency target of the batcher, in milliseconds. Undefined without a target. */
export function targetLatencyMs(config: Pick<ModelConfig, "parameters">): number | undefined {
  const text = config.parameters[TARGET_LATENCY]?.stringValue;
  return text === undefined ? undefined : Number(text);
}

/** The configuration with its target, if there is one. */
export function withTargetLatency(config: ModelConfig, milliseconds: number | undefined): ModelConfig {
  if (milliseconds === undefined) return config;
  const parameters = { ...config.parameters, [TARGET_LATENCY]: { stringValue: String(milliseconds) } };
  return { ...config, parameters };
}

/** Lists problems with the target of a configuration. */
export function targetLatencyProblems(config: ModelConfig): string[] {
  const target = targetLatencyMs(config);
  if (target === undefined) return [];
  const problems: string[] = [];
  if (!Number.isFinite(target) || target <= 0) {
    problems.push(
      `target latency of model '${config.name}': expected a number of milliseconds above 0, got ${target}`,
    );
  }
  if (config.dynamicBatching === undefined) {
    problems.push(
      `model '${config.name}' has a target latency without the dynamic batcher: set dynamic_batching`,
    );
  }
  if (isDecoupled(config)) {
    problems.push(
      `model '${config.name}' has a target latency and the 'decoupled' transaction policy: it can have one of them`,
    );
  }
  return problems;
}
