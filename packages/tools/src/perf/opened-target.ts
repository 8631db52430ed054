import type { TestedModel } from "../data/tested-model.js";
import type { ServerView } from "../measure/server/server-view.js";
import type { TargetOptions } from "../target/target-options.js";

/** A target that answers, with what a measurement asks it. */
export interface OpenedTarget {
  readonly options: TargetOptions;
  /** Undefined for OpenAI endpoints. */
  readonly model?: TestedModel;
  /** Undefined where there are no statistics to ask for. */
  readonly view?: ServerView;
  /** Reads the metrics page of a target that has no address. */
  readonly metricsPage?: () => Promise<string>;
  close(): Promise<void>;
}
