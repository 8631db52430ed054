import { configText, type LoadCase } from "../../support/loads/load-case.js";
import type { Draft } from "../difference.js";
import { unknownWarmupInput } from "../scheduler/refusals.js";
import { maxInflightRequests } from "./accepted-models.js";
import { type LoadDifference, reasonOf, refuse, refuseWhenPolled, takenReason } from "./load-draft.js";

/** Lines of the recorded server's log about a model that was rejected while the repository was read. */
function told({ log = [], load }: Pick<LoadCase | Draft<LoadCase>, "log" | "load">): string[] {
  const error = load?.status === 400 && load.body !== "" ? load.body.error : "";
  const [, text = ""] = /^load failed for model '[^']*': ([\s\S]*?);?\n?$/.exec(error) ?? [];
  if (text !== "") return [text];
  const parser = log.filter((line) => line.includes("Error parsing text-format"));
  const texts = log.flatMap((line) => /^[EW] \S+\] "([\s\S]*?)\s*"$/.exec(line)?.[1] ?? []);
  const reasons = texts
    .filter((one) => !one.endsWith("model not found in any model repository."))
    .map((one) => one.replace(/^Poll failed for model directory '[^']*': /, ""));
  if (parser.length === 0) return reasons;
  const errors = parser.map((line) => line.replace(/^.*?(?=Error parsing)/, "")).join("\n");
  return reasons.map((text) => `${text}: ${errors}`);
}

const WORDS = /^(Invalid argument|Internal|Not found|Unsupported|Unavailable): /;

/** The position at the end of our own parse errors. */
const PLACE = / \(at [\w.[\]]+\)$/gm;

/** A rejected model of which the recorded server's index has only the name. */
function isBare({ load, index = [] }: LoadCase): boolean {
  return load !== undefined && load.status >= 400 && index.length === 1 && index[0]?.state === undefined;
}

/** The index has the reason for a rejected model, as the recorded server's log does. */
const indexReasons: LoadDifference = {
  rule: "index-reasons",
  applies: (recorded) =>
    isBare(recorded) &&
    told(recorded).length > 0 &&
    agent(recorded) === undefined &&
    !maxInflightRequests.applies(recorded),
  amend(draft, got) {
    const reason = takenReason(got, /./);
    const said = reason.replace(WORDS, "").replace(PLACE, "");
    const expected = told(draft);
    if (!expected.some((text) => said === text || said.startsWith(`${text}\n`))) {
      throw new Error(`index: expected the reason ${JSON.stringify(expected)}, got "${reason}"`);
    }
    draft.index = [{ name: draft.model, state: "UNAVAILABLE", reason }];
  },
};

/** The name of an agent that the recorded server did not find. */
function agent(recorded: LoadCase | Draft<LoadCase>): string | undefined {
  const texts = isBare(recorded as LoadCase) ? told(recorded) : [];
  return texts.flatMap(
    (text) => /^unable to find '[^']+' for repo agent '([^']+)', searched/.exec(text)?.[1] ?? [],
  )[0];
}

const repositoryAgents: LoadDifference = {
  rule: "repository-agents",
  applies: (recorded) => agent(recorded) !== undefined,
  amend(draft) {
    const name = agent(draft);
    const text = `unable to find 'libtritonrepoagent_${name}.so' for repo agent '${name}': agents are functions here, and none has this name; register it with new Triton({ repositoryAgents: { ${name} } }), or set repositoryAgentDirectory (--repoagent-directory) to a directory with ${name}/agent.js or ${name}/agent.py`;
    refuseWhenPolled(draft, `Invalid argument: ${text}`);
  },
};

const MISSING_BACKEND =
  /^(Invalid argument: unable to find backend library for backend '(\w+)', try specifying runtime on the model configuration\.)$/;

/** Formats of other frameworks: there is a backend, or our text says what to do with them. */
const missingBackends: LoadDifference = {
  rule: "missing-backends",
  applies: (recorded) =>
    /'(tensorrt|openvino|pytorch)'/.test(MISSING_BACKEND.exec(reasonOf(recorded) ?? "")?.[0] ?? ""),
  amend(draft, got) {
    const { model } = draft;
    const [text = "", , name] = MISSING_BACKEND.exec(reasonOf(draft) as string) ?? [];
    const form: Readonly<Record<string, RegExp>> = {
      tensorrt: /There is none for 'tensorrt' here: .*model\.onnx/,
      openvino: /^Unsupported: model 'm': '<REPO>\/m\/1\/model\.xml' runs only in OpenVINO.*model\.onnx/,
      pytorch: /^Unavailable: unable to find '<REPO>\/\w+\/1\/model\.pt' for model instance/,
    };
    const reason = takenReason(got, form[name!]!);
    if (name === "tensorrt" && !reason.startsWith(text))
      throw new Error(`the reason of '${model}' is "${reason}"`);
    refuse(draft, reason);
  },
};

/** A number without a name in its enumeration. */
const enumNumbers: LoadDifference = {
  rule: "enum-numbers",
  applies: (recorded) => reasonOf(recorded) === "Internal: attempt to access JSON non-string as string",
  amend(draft, got) {
    const numbers = [...configText(draft as LoadCase).matchAll(/\b(data_type|kind):\s*(-?\d+)/g)].map(
      ([, , number]) => number,
    );
    const form = new RegExp(
      `^Invalid argument: .*(data_?type|kind).*(?<![\\w-])(${numbers.join("|")})(?!\\w)`,
    );
    refuse(draft, takenReason(got, form));
  },
};

const tensorflow: LoadDifference = {
  rule: "tensorflow-backend",
  applies: (recorded) =>
    /unable to find backend library for backend 'tensorflow'/.test(reasonOf(recorded) ?? ""),
  amend(draft) {
    const missing = `Unavailable: unable to find '<REPO>/${draft.model}/1/model.savedmodel' for model instance '${draft.model}'`;
    const empty = `Invalid argument: the frozen graph '<REPO>/${draft.model}/1/model.graphdef': expected nodes, got none`;
    refuse(draft, "1/model.graphdef" in draft.files ? empty : missing);
  },
};

const onnxFiles: LoadDifference = {
  rule: "onnx-files",
  applies: (recorded) =>
    /onnx runtime error \d+: Load model from \S+ failed:.*(Protobuf parsing failed|does not have a graph)/.test(
      reasonOf(recorded) ?? "",
    ),
  amend: (draft, got) =>
    refuse(
      draft,
      takenReason(
        got,
        /^Invalid argument: cannot read the ONNX model '<REPO>\/[^']+': (it is empty|it has no graph|it is a text file that begins with '[^\n]*'|.+ at byte \d+)$/,
      ),
    ),
};

function isUntyped({ files }: LoadCase): boolean {
  return Object.keys(files).some((path) => path.endsWith(".onnx")) && !("config.pbtxt" in files);
}

const onnxTypes: LoadDifference = {
  rule: "onnx-data-types",
  applies: (recorded) =>
    /MLDataType for: tensor\(\w+\) is not currently registered/.test(reasonOf(recorded) ?? "") ||
    (isUntyped(recorded) && /must specify 'data_type' for/.test(reasonOf(recorded) ?? "")),
  amend: (draft, got) =>
    refuse(
      draft,
      takenReason(
        got,
        /^Unsupported: cannot serve the ONNX model '<REPO>\/[^']+': it has (input|output) '[^']+' of type \w+, which (the protocol cannot carry|onnxruntime-node cannot pass; .+)$/,
      ),
    ),
};

const warmupInputNames: LoadDifference = {
  rule: "warmup-input-name",
  applies: (recorded) =>
    /expected \d+ inputs but got \d+ inputs/.test(reasonOf(recorded) ?? "") &&
    unknownWarmupInput(configText(recorded), recorded.model) !== undefined,
  amend(draft) {
    const name = unknownWarmupInput(configText(draft as LoadCase), draft.model);
    refuse(draft, `Invalid argument: unexpected inference input '${name}' for model '${draft.model}'`);
  },
};

/** Rules about the texts for models that both servers reject. */
export const otherTexts: readonly LoadDifference[] = [
  indexReasons,
  repositoryAgents,
  missingBackends,
  enumNumbers,
  tensorflow,
  onnxFiles,
  onnxTypes,
  warmupInputNames,
];
