import type { DataSet } from "../data/data-set.js";
import { loadDataSet } from "../data/load-data-set.js";
import { loadOpenAiData } from "../data/load-openai-data.js";
import type { LoadGenerator } from "../load/load-generator.js";
import type { LoadOptions } from "../load/load-options.js";
import { startLoadGenerator } from "../load/start-load-generator.js";
import { type MeasureClock, processClock } from "../measure/measure-clock.js";
import { openTarget } from "./open-target.js";
import type { OpenedTarget } from "./opened-target.js";
import type { PerfSettings, TargetSettings } from "./perf-settings.js";

/** What the command opens. Tests replace it. */
export interface PerfParts {
  readonly clock: MeasureClock;
  openTarget(settings: TargetSettings): Promise<OpenedTarget>;
  loadData(target: OpenedTarget, settings: PerfSettings): Promise<DataSet>;
  startGenerator(target: OpenedTarget, data: DataSet, options: LoadOptions): Promise<LoadGenerator>;
}

/** The real ones. */
export const realParts: PerfParts = {
  clock: processClock,
  openTarget,
  loadData: ({ model }, { data }) =>
    model === undefined
      ? loadOpenAiData(typeof data.inputData === "object" ? data.inputData : [], data)
      : loadDataSet(model, data),
  startGenerator: ({ options }, data, load) => startLoadGenerator(options, data, load),
};
