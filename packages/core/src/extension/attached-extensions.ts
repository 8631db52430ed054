import { errorFor, type ModelConfig } from "@tritonjs/protocol";
import { withSettings } from "../config/model-options.js";
import type { ParameterTable } from "../instance/backend.js";
import type { ModelPlan } from "../model/model-server.js";
import type { Residence, TenantModel } from "../model/residence.js";
import type { CollectedFamily } from "../observe/metric-families.js";
import type { RequestTracer } from "../observe/request-trace.js";
import type { AroundScheduling } from "../scheduler/around-scheduling.js";
import { realClock, settledWithin } from "../system/clock.js";
import type {
  Extension,
  ExtensionPage,
  ExtensionParts,
  ExtensionServer,
  ManagementRoute,
} from "./extension.js";
import { boundModels, type ModelSource } from "./model-source.js";

/** Milliseconds that an extension has at least: it may have files to write, however little time requests have. */
const LEAST_WAIT_MS = 10_000;

/** The extensions of one server, in the order in which the program lists them. */
export class AttachedExtensions {
  /** Where models come from that the program does not bind. */
  readonly source: ModelSource;
  readonly #parts: readonly ExtensionParts[];
  /** The parameters of configurations that all of them read. */
  readonly parameters: ParameterTable;
  /** The pages of the extensions that have one, by name. */
  readonly pages: ReadonlyMap<string, ExtensionPage>;
  #started: Promise<unknown> = Promise.resolve();

  /** @throws TritonError INVALID_ARG for two extensions of one name, and for options that one of them cannot have */
  constructor(extensions: readonly Extension[], server: ExtensionServer) {
    const attached = new Map<string, ExtensionParts>();
    for (const extension of extensions) {
      const { name } = extension;
      if (attached.has(name)) {
        throw errorFor("INVALID_OPTION", `new Triton({ extensions }): expected one named '${name}', got two`);
      }
      attached.set(name, extension.attach(server));
    }
    this.#parts = [...attached.values()];
    this.pages = new Map(
      [...attached].flatMap(([name, { page }]) => (page === undefined ? [] : [[name, page]])),
    );
    const sources = [...attached].flatMap(([name, { models }]) => (models ? [{ name, models }] : []));
    if (sources.length > 1) {
      const names = sources.map(({ name }) => `'${name}'`).join(" and ");
      throw errorFor(
        "INVALID_OPTION",
        `extensions: expected at most one with models of its own, got ${names}`,
      );
    }
    this.source = sources[0]?.models ?? boundModels(server.registry);
    this.parameters = Object.assign({}, ...extensions.map(({ parameters }) => parameters));
  }

  /** What all of them add to the management. */
  get routes(): ManagementRoute[] {
    return this.#parts.flatMap(({ routes }) => [...(routes ?? [])]);
  }

  /** Starts all of them. `started` has the first failure. */
  start(): void {
    this.#started = Promise.all(this.#parts.map(async (parts) => parts.start?.()));
    this.#started.catch(() => {});
  }

  async started(): Promise<void> {
    await this.#started;
  }

  families(): CollectedFamily[] {
    return this.#parts.flatMap((parts) => [...(parts.families?.() ?? [])]);
  }

  get tracers(): RequestTracer[] {
    return this.#parts.map(({ tracer }) => tracer).filter((tracer) => tracer !== undefined);
  }

  /**
   * A plan with the batcher that an extension gives its model.
   *
   * @throws TritonError INVALID_ARG for a model with two batchers, and for one that cannot have its batcher
   */
  #withBatcher(plan: ModelPlan): ModelPlan {
    const { name, version, config, variableLength, batcher: own } = plan;
    const isGrouped = variableLength?.grouping.batchBy !== undefined;
    const model = { name, version, config, isGrouped, batcher: own };
    const [batcher, second] = this.#parts.flatMap((parts) => parts.batcher?.(model) ?? []);
    if (batcher === undefined) return plan;
    const other = second ?? (own?.name === batcher.name ? undefined : own);
    if (isGrouped || other !== undefined) {
      const names = `'${isGrouped ? "batchBy" : other!.name}' and '${batcher.name}'`;
      throw errorFor("INVALID_CONFIG", `model '${name}' has two batchers, ${names}: leave one of them out`);
    }
    const problems = batcher.problems?.(config) ?? [];
    if (problems.length > 0) throw errorFor("INVALID_CONFIG", problems.join("; "));
    return { ...plan, config: withSettings(config, batcher), batcher };
  }

  /** The first place that an extension gives to a version. */
  admit(model: TenantModel): Residence | undefined {
    return firstOf(this.#parts, (parts) => parts.admit?.(model));
  }

  around(plan: ModelPlan): AroundScheduling | undefined {
    return firstOf(this.#parts, (parts) => parts.around?.(plan));
  }

  adapt(plan: ModelPlan): ModelPlan {
    return this.#parts.reduce((adapted, parts) => parts.adapt?.(adapted) ?? adapted, this.#withBatcher(plan));
  }

  startsOnDisk(config: ModelConfig): boolean {
    return this.#parts.some((parts) => parts.startsOnDisk?.(config));
  }

  /** @param limitMs time limit of requests, within which the extensions should be done too */
  async drain(limitMs: number): Promise<void> {
    await this.#each(limitMs, (parts) => parts.drain?.());
  }

  /** @param limitMs time limit of requests, within which the extensions should be done too */
  async close(limitMs: number): Promise<void> {
    await this.#each(limitMs, (parts) => parts.close?.());
  }

  /** An extension that fails must not keep the others, and the server, from closing. */
  async #each(limitMs: number, act: (parts: ExtensionParts) => void | Promise<void>): Promise<void> {
    await Promise.all(
      this.#parts.map(async (parts) => {
        const done = (async () => act(parts))().catch((error) => {
          process.emitWarning(`cannot close an extension: ${String(error)}`, "TritonWarning");
        });
        // Files are written in real time, whatever the clock of the server is.
        await settledWithin(realClock, Math.max(limitMs, LEAST_WAIT_MS), done);
      }),
    );
  }
}

function firstOf<T>(
  all: readonly ExtensionParts[],
  decide: (parts: ExtensionParts) => T | undefined,
): T | undefined {
  for (const parts of all) {
    const decided = decide(parts);
    if (decided !== undefined) return decided;
  }
  return undefined;
}
