import { invalidOption } from "../../data/invalid-option.js";
import type { OptionReader } from "../../perf/option-reader.js";
import { readOptionNumber } from "../../perf/option-readers.js";
import { METRIC_TAGS, type MetricTag } from "../figures.js";
import type { Constraints, Limit, SearchGoal } from "../goal.js";

/** Reads what the search looks for. */
export function readGoal(options: OptionReader, models: readonly string[]): SearchGoal {
  const objectives = Object.fromEntries(
    readWeights("--objective", options.text("objective")!, METRIC_TAGS, 1),
  ) as SearchGoal["objectives"];
  const constraints: Record<string, Limit> = {};
  const modelConstraints: Record<string, Record<string, Limit>> = {};
  const add = (tag: MetricTag, limit: Limit, model?: string) => {
    if (model === undefined) constraints[tag] = { ...constraints[tag], ...limit };
    else {
      const known = modelConstraints[model];
      modelConstraints[model] = { ...known, [tag]: { ...known?.[tag], ...limit } };
    }
  };
  const budget = options.number("latencyBudget");
  if (budget !== undefined) add("perf_latency_p99", { max: budget });
  const least = options.number("minThroughput");
  if (least !== undefined) add("perf_throughput", { min: least });
  for (const text of options.texts("constraint").flatMap((one) => one.split(","))) {
    const { model, tag, limit } = readConstraint(text, models);
    add(tag, limit, model);
  }
  const weights = options.text("modelWeights");
  return {
    objectives,
    constraints: constraints as Constraints,
    ...(Object.keys(modelConstraints).length > 0 && { modelConstraints }),
    ...(weights !== undefined && {
      modelWeights: Object.fromEntries(readWeights("--model-weights", weights, models)),
    }),
  };
}

/** Reads `name:weight,name:weight`. */
function readWeights<Name extends string>(
  option: string,
  text: string,
  names: readonly Name[],
  fallback?: number,
): [Name, number][] {
  return text.split(",").map((part) => {
    const colon = part.lastIndexOf(":");
    const [name, weight] =
      colon === -1 ? [part.trim()] : [part.slice(0, colon).trim(), part.slice(colon + 1)];
    const known = names.find((one) => one === name);
    if (known === undefined) throw invalidOption(`${option}: expected ${names.join(", ")}, got '${name}'`);
    if (weight === undefined && fallback === undefined) {
      throw invalidOption(`${option}: expected name:weight, got '${part}'`);
    }
    const value = weight === undefined ? fallback! : readOptionNumber(option, weight);
    if (value === 0) throw invalidOption(`${option}: expected a weight above 0, got '${part}'`);
    return [known, value];
  });
}

/** Reads `perf_latency_p99<50`, or `resnet.perf_latency_p99<50` for one of the models. */
function readConstraint(
  text: string,
  models: readonly string[],
): { readonly model?: string; readonly tag: MetricTag; readonly limit: Limit } {
  const [, name = "", relation = "", number = ""] = /^\s*([\w.-]+?)\s*(<=?|>=?)\s*(\S+)\s*$/.exec(text) ?? [];
  const tag = METRIC_TAGS.find((one) => name === one || name.endsWith(`.${one}`));
  if (tag === undefined) {
    throw invalidOption(
      `--constraint: expected a limit such as perf_latency_p99<50 of ${METRIC_TAGS.join(", ")}, got '${text}'`,
    );
  }
  const value = readOptionNumber("--constraint", number);
  const limit = relation.startsWith("<") ? { max: value } : { min: value };
  if (name === tag) return { tag, limit };
  const model = name.slice(0, -tag.length - 1);
  if (!models.includes(model)) {
    throw invalidOption(`--constraint: expected one of the models ${models.join(", ")}, got '${model}'`);
  }
  return { model, tag, limit };
}
