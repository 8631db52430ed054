import type { Extension } from "@tritonjs/core/extension";
import type { OptionValues } from "../options/options.js";
import type { SpanSettings } from "./span-tracer.js";

/** What the server is started with. */
export interface CommandLine {
  readonly values: OptionValues;
  readonly environment: NodeJS.ProcessEnv;
  /** Settings of spans, where the trace mode is "opentelemetry". */
  readonly spans: SpanSettings | undefined;
  /** Writes an error of a part of the server to its log. */
  logError(part: string, message: string): void;
}

/** An extension that the command knows. */
interface KnownExtension {
  /**
   * Whether something asks for the extension: an option, the machine, or a parameter that a model may have. Models load
   * while the server runs, so an extension that parameters ask for is loaded for every server.
   */
  asked(given: CommandLine): boolean;
  load(given: CommandLine): Promise<Extension>;
}

/** The extensions of the command. No other file of the command names them, and a server loads those that are asked for. */
const KNOWN: readonly KnownExtension[] = [
  {
    asked: ({ spans }) => spans !== undefined,
    async load({ spans, logError }) {
      const { loadSpanTracer } = await import("./span-tracer.js");
      return loadSpanTracer(spans!, (message) => logError("tracer", message));
    },
  },
  {
    // The parameters of a model can ask for it.
    asked: () => true,
    async load({ values }) {
      const { modelsOnDemand } = await import("@tritonjs/operations/on-demand");
      const { "model-ttl-secs": modelTtlSecs, "model-memory-budget-mb": modelMemoryBudgetMb } = values;
      return modelsOnDemand({
        loadOnDemand: values["load-on-demand"],
        ...(modelTtlSecs !== 0 && { modelTtlSecs }),
        ...(modelMemoryBudgetMb !== 0 && { modelMemoryBudgetMb }),
      });
    },
  },
  {
    asked: ({ values }) => values["scheduling-tape"] !== "" || values["scheduling-ring"] > 0,
    async load({ values: { "scheduling-tape": file, "scheduling-ring": seconds } }) {
      const { recordScheduling } = await import("@tritonjs/operations/time-travel");
      return recordScheduling({
        ...(file !== "" && { file }),
        ...(seconds > 0 && { seconds, keep: "last" }),
      });
    },
  },
  {
    asked: ({ values }) => values["capture-directory"] !== "",
    async load({ values }) {
      const { capture } = await import("@tritonjs/operations/capture");
      return capture({ directory: values["capture-directory"], rate: values["capture-rate"] });
    },
  },
];

/**
 * Loads the extensions that a command line asks for.
 *
 * @throws TritonError for settings that they cannot have, or a package that is not installed
 */
export function loadExtensions(given: CommandLine): Promise<Extension[]> {
  return Promise.all(KNOWN.filter(({ asked }) => asked(given)).map(({ load }) => load(given)));
}
