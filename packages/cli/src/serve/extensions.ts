import type { Extension } from "@tritonjs/core/extension";
import type { OptionValues } from "../options/options.js";

/** An extension that the command knows. */
interface KnownExtension {
  /** Whether the command line, or a model that it may serve, can ask for the extension. */
  asked(values: OptionValues): boolean;
  load(values: OptionValues): Promise<Extension>;
}

/** The extensions of the command. No other file of it names them. */
const KNOWN: readonly KnownExtension[] = [
  {
    // The parameters of a model can ask for it while the server runs.
    asked: () => true,
    async load(values) {
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
    asked: (values) => values["capture-directory"] !== "",
    async load(values) {
      const { capture } = await import("@tritonjs/operations/capture");
      return capture({ directory: values["capture-directory"], rate: values["capture-rate"] });
    },
  },
  {
    asked: (values) => values["scheduling-tape"] !== "" || values["scheduling-ring"] > 0,
    async load({ "scheduling-tape": file, "scheduling-ring": seconds }) {
      const { recordScheduling } = await import("@tritonjs/operations/time-travel");
      return recordScheduling({
        ...(file !== "" && { file }),
        ...(seconds > 0 && { seconds, keep: "last" }),
      });
    },
  },
];

/** Loads the extensions that a command line asks for. @throws TritonError for options that they cannot have */
export function loadExtensions(values: OptionValues): Promise<Extension[]> {
  return Promise.all(KNOWN.filter(({ asked }) => asked(values)).map(({ load }) => load(values)));
}
