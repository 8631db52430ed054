import type { DataOptions } from "../data/data-options.js";
import type { LoadOptions } from "../load/load-options.js";
import type { LoadPlan } from "../measure/load-plan.js";
import type { MeasureOptions } from "../measure/measure-options.js";
import type { ModelName } from "../measure/server/server-view.js";
import type { Goal } from "../measure/tokens/goals.js";
import type { RunDescription } from "../report/run-description.js";
import type { GrpcTargetOptions, HttpTargetOptions, OpenAiTargetOptions } from "../target/target-options.js";
import type { Assertion } from "./assertions.js";
import type { InProcessSource } from "./open-triton.js";

/** A model that runs in this process, before it is opened. */
export interface InProcessSettings {
  readonly kind: "in-process";
  readonly modelName: string;
  readonly modelVersion?: string;
  readonly parameters: HttpTargetOptions["parameters"];
  readonly source: InProcessSource;
}

/** Where requests go. */
export type TargetSettings = HttpTargetOptions | GrpcTargetOptions | OpenAiTargetOptions | InProcessSettings;

/** Files of the reports. */
export interface ReportSettings {
  readonly csv?: string;
  readonly verboseCsv: boolean;
  readonly profile?: string;
  readonly json?: string;
  readonly html?: string;
  readonly verbose: boolean;
}

/** The command line as read and checked, before anything is opened. */
export interface PerfSettings {
  readonly target: TargetSettings;
  /** Models that the measured model calls. */
  readonly calledModels: readonly ModelName[];
  readonly data: DataOptions;
  readonly load: LoadOptions;
  readonly measure: Omit<MeasureOptions, "tokens">;
  /** Undefined for a fixed schedule and for sessions, which the data has. */
  readonly plan: LoadPlan | undefined;
  /** Live sessions of the data. */
  readonly sessionConcurrency?: number;
  readonly goals: readonly Goal[];
  readonly assertions: readonly Assertion[];
  readonly metrics?: { readonly url: string; readonly intervalMs: number };
  readonly reports: ReportSettings;
  readonly description: Omit<RunDescription, "decoupled" | "isSequenceModel">;
}
