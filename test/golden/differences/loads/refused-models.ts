import type { LoadCase } from "../../support/loads/load-case.js";
import type { Draft } from "../difference.js";
import {
  configOf,
  type LoadDifference,
  reasonOf,
  refuse,
  refuseWhenPolled,
  refuseWithoutVersion,
} from "./load-draft.js";

interface Refusal {
  readonly at: "poll" | "create";
  readonly reason: string;
}

/** Meaningless parts of a configuration that the recorded server accepted. */
function nonsense(recorded: LoadCase | Draft<LoadCase>): Refusal | undefined {
  const config = recorded.load?.status === 200 ? configOf(recorded) : undefined;
  const sequences = config?.sequenceBatching;
  const polled = (text: string): Refusal => ({
    at: "poll",
    reason: `Invalid argument: ${text} for ${recorded.model}`,
  });
  const created = (text: string): Refusal => ({ at: "create", reason: `Invalid argument: ${text}` });
  if (Number.isNaN(sequences?.direct?.minimumSlotUtilization)) {
    return polled("sequence batching minimum slot utilization must be in range (0.0, 1.0]");
  }
  if (Number(sequences?.oldest?.maxCandidateSequences ?? 0) < 0) {
    return polled("sequence batching max candidate sequences must be an integer >= 0");
  }
  const states = sequences?.state ?? [];
  for (const { inputName, outputName, dataType } of states) {
    const name = inputName || outputName;
    if (inputName === "" || outputName === "") {
      return created(
        `state '${name}' of model '${recorded.model}' must have an input name and an output name`,
      );
    }
    if (dataType === "TYPE_INVALID") {
      return created(
        `state '${name}' of model '${recorded.model}': expected a known data type, got 'TYPE_INVALID'`,
      );
    }
  }
  const twice = (names: readonly string[]) => [
    ...new Set(names.filter((name, i) => names.indexOf(name) < i)),
  ];
  const stateNames = [
    ...twice(states.map(({ inputName }) => inputName)).map(
      (name) => `State input name '${name}' specified more than once.`,
    ),
    ...twice(states.map(({ outputName }) => outputName)).map(
      (name) => `State output name '${name}' specified more than once.`,
    ),
  ];
  if (stateNames.length > 0) return created(stateNames.join("\n"));
  const [output] = twice((config?.output ?? []).map(({ name }) => name));
  return output === undefined
    ? undefined
    : created(`model output '${output}' is given more than once for ${recorded.model}`);
}

const nonsenseIsRefused: LoadDifference = {
  rule: "nonsense-is-refused",
  applies: (recorded) => nonsense(recorded) !== undefined,
  amend(draft) {
    const { at, reason } = nonsense(draft) as Refusal;
    if (at === "poll") refuseWhenPolled(draft, reason);
    else refuse(draft, reason);
  },
};

/** Names of version directories that the library accepts. */
function isVersion(name: string): boolean {
  return /^[1-9]\d*$/.test(name) && Number.isSafeInteger(Number(name));
}

/** A directory that the recorded server took for a version by the number at the start of its name. */
function isOddVersion(name: string): boolean {
  return /^\s*[-+]?\d/.test(name) && !/^0\d/.test(name) && !isVersion(name);
}

function directories({ files }: LoadCase | Draft<LoadCase>): string[] {
  return [...new Set(Object.keys(files).flatMap((path) => /^([^/]+)\//.exec(path)?.[1] ?? []))];
}

const versionNames: LoadDifference = {
  rule: "version-directories",
  applies: (recorded) =>
    directories(recorded).some(isOddVersion) &&
    (recorded.load?.status === 200 || recorded.server !== undefined),
  amend(draft) {
    const versions = directories(draft).filter(isVersion);
    if (versions.length === 0) {
      refuseWithoutVersion(draft);
      return;
    }
    draft.index = draft.index?.filter(({ version }) => versions.includes(version ?? "")) ?? [];
    const metadata = draft.metadata as { versions?: string[] } | undefined;
    if (metadata?.versions)
      metadata.versions = metadata.versions.filter((version) => versions.includes(version));
  },
};

/** The recorded server has no row for a model without a version. */
const rowWithoutVersions: LoadDifference = {
  rule: "index-reasons",
  applies: ({ load, index = [] }) =>
    index.length === 0 &&
    load?.body !== "" &&
    /at least one version must be available/.test(load?.body.error ?? ""),
  amend: refuseWithoutVersion,
};

/** Files that a configuration names outside of its model's directory. */
function outsideFile(recorded: LoadCase | Draft<LoadCase>): string | undefined {
  if (!/failed to open text file for read/.test(reasonOf(recorded) ?? "")) return undefined;
  const { output = [], modelWarmup = [] } = configOf(recorded) ?? {};
  const isOutside = (file: string) => file.startsWith("/") || file.split("/").includes("..");
  const label = output.find(({ labelFilename }) => isOutside(labelFilename ?? ""));
  if (label !== undefined) {
    return `label_filename of output '${label.name}' of model '${recorded.model}': expected a path inside the model's directory, got '${label.labelFilename}'`;
  }
  const files = modelWarmup.flatMap(({ inputs }) =>
    Object.values(inputs).map(({ inputDataFile }) => inputDataFile ?? ""),
  );
  const file = files.find(isOutside);
  return (
    file && `data file: expected a path inside the model's directory <REPO>/${recorded.model}, got '${file}'`
  );
}

const pathsInside: LoadDifference = {
  rule: "paths-inside",
  applies: (recorded) => outsideFile(recorded) !== undefined,
  amend: (draft) => refuse(draft, `Invalid argument: ${outsideFile(draft)}`),
};

/** A directory in place of `config.pbtxt`, which ended the recorded server. */
const survives: LoadDifference = {
  rule: "survives",
  applies: ({ server, files }) =>
    server !== undefined && Object.keys(files).some((path) => path.startsWith("config.pbtxt/")),
  amend(draft, got) {
    const [row] = got.index;
    if (!/^Internal: failed to .*config\.pbtxt/.test(row?.reason ?? ""))
      throw new Error(`got ${JSON.stringify(got.index)}`);
    refuseWhenPolled(draft, row?.reason ?? "");
  },
};

/** Rules about models that the library rejects and the recorded server loaded, or rejected for another reason. */
export const refusedModels: readonly LoadDifference[] = [
  nonsenseIsRefused,
  versionNames,
  rowWithoutVersions,
  pathsInside,
  survives,
];
