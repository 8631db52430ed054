import type { RegionRange, RequestRegions } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { asArray, asBoolean, asText, asUnsigned, find, member } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { checkTensorCount } from "./part-count.js";
import { readRange } from "./shared-memory.js";

/** How one output goes to the client. */
export interface OutputForm {
  readonly binary: boolean;
  /** Number of classes to return instead of the tensor; 0 returns the tensor. */
  readonly classes: number;
  /** Range of shared memory for the output; undefined puts the output in the answer. */
  readonly range?: RegionRange;
}

/** How outputs go to the client: forms by name, and the form of all others. */
export interface OutputForms {
  readonly named: ReadonlyMap<string, OutputForm>;
  readonly others: OutputForm;
}

const NO_FORMS: ReadonlyMap<string, OutputForm> = new Map();

/** All outputs as JSON: the default. */
export const ALL_IN_JSON: OutputForms = { named: NO_FORMS, others: { binary: false, classes: 0 } };

/** All outputs in binary. */
export const ALL_IN_BINARY: OutputForms = { named: NO_FORMS, others: { binary: true, classes: 0 } };

/** Reads `outputs` of an infer request. If an output is listed twice, its first form counts. */
export function readRequestedOutputs(
  request: JsonValue,
  modelOutputs: number,
  regions: RequestRegions,
): Map<string, OutputForm> {
  const named = new Map<string, OutputForm>();
  const json = find(request, "outputs");
  if (json === undefined) return named;
  const array = asArray(json, "Unable to parse 'outputs'");
  checkTensorCount("outputs", array.length, modelOutputs);
  for (const output of elementsOf(array)) {
    const parameters = find(output, "parameters");
    checkForm(parameters);
    const name = asText(member(output, "name", "Unable to parse 'name'"), "Unable to parse 'name'");
    const classes = find(parameters, "classification");
    const binary = find(parameters, "binary_data");
    const range = readRange(parameters);
    const form: OutputForm = {
      classes: classes === undefined ? 0 : Number(asUnsigned(classes, "Unable to set 'classification'")),
      binary: binary === undefined ? false : asBoolean(binary, "Unable to parse 'binary_data'"),
      ...(range === undefined ? {} : { range: regions.hold(range) }),
    };
    if (!named.has(name)) named.set(name, form);
  }
  return named;
}

/** Shared memory gets an output exactly as the model returned it. */
function checkForm(parameters: JsonValue | undefined): void {
  if (find(parameters, "shared_memory_region") === undefined) return;
  if (find(parameters, "classification") !== undefined) {
    throw new TritonError(
      "INVALID_ARG",
      "Output can't set both 'shared_memory_region' and 'classification'",
      { reason: "INVALID_REQUESTED_OUTPUT" },
    );
  }
  const binary = find(parameters, "binary_data");
  if (binary !== undefined && asBoolean(binary, "Unable to set 'binary_data'")) {
    throw new TritonError("INVALID_ARG", "Output can't set both 'shared_memory_region' and 'binary_data'", {
      reason: "INVALID_REQUESTED_OUTPUT",
    });
  }
}
