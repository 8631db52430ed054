import { configText } from "../../support/loads/load-case.js";
import { accept, type LoadDifference, reasonOf } from "./load-draft.js";

const shapeTensors: LoadDifference = {
  rule: "shape-tensors",
  applies: (recorded) =>
    /shape tensors are only supported for TensorRT platform/.test(reasonOf(recorded) ?? ""),
  amend: accept,
};

export const maxInflightRequests: LoadDifference = {
  rule: "max-inflight-requests",
  applies: (recorded) =>
    recorded.load?.status === 500 &&
    (recorded.log ?? []).some((line) => /no field named "max_inflight_requests"/.test(line)) &&
    configText(recorded).includes("max_inflight_requests"),
  amend(draft) {
    accept(draft);
    // The members are loaded with it.
    delete draft.index_others;
  },
};

/** Python code that names a data type as the protocol does, without `TYPE_`. */
const PLAIN_TYPE = /"data_type":\s*"(BOOL|U?INT(8|16|32|64)|FP(16|32|64)|BF16|BYTES|STRING)"/;

const plainDataTypes: LoadDifference = {
  rule: "python-data-type-names",
  applies: (recorded) =>
    reasonOf(recorded)?.startsWith("Not found: model configuration is not provided") === true &&
    Object.values(recorded.files).some((text) => typeof text === "string" && PLAIN_TYPE.test(text)),
  amend: accept,
};

/** A 64-bit integer that the recorded server writes as text. */
const configIntegers: LoadDifference = {
  rule: "config-integers",
  applies: ({ config }) => config !== undefined && toNumbers(structuredClone(config)),
  amend({ config, ...draft }) {
    toNumbers(config);
    if (draft.config_raw !== undefined) throw new Error("the text is to be changed too");
  },
};

/** Integers beyond 2^53 are numbers here, and so they are rounded. */
const bigIntegers: LoadDifference = {
  rule: "big-integers",
  applies: ({ config_raw: raw = "" }) => /:\s*\d{17,}/.test(raw),
  amend: (draft) => void delete draft.config_raw,
};

/** Changes the texts to numbers; true if there were any. */
function toNumbers(config: unknown): boolean {
  const { instance_group: groups = [], sequence_batching: sequences } = config as {
    instance_group?: { secondary_devices?: { device_id: unknown }[] }[];
    sequence_batching?: { state?: { initial_state?: { dims: unknown[] }[] }[] };
  };
  const number = (value: unknown) =>
    typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value;
  let changed = false;
  for (const device of groups.flatMap(({ secondary_devices: devices = [] }) => devices)) {
    changed ||= typeof device.device_id === "string";
    device.device_id = number(device.device_id);
  }
  for (const state of (sequences?.state ?? []).flatMap(({ initial_state: initial = [] }) => initial)) {
    changed ||= state.dims.some((dim) => typeof dim === "string");
    state.dims = state.dims.map(number);
  }
  return changed;
}

/** Rules about models that load here and not on the recorded server, and about how their configurations are shown. */
export const acceptedModels: readonly LoadDifference[] = [
  shapeTensors,
  maxInflightRequests,
  plainDataTypes,
  configIntegers,
  bigIntegers,
];
