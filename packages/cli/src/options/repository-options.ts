import type { ModelControlMode } from "@tritonjs/core/types";
import { boolean, flag, integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { readChoice } from "./read-value.js";

const repository = list(
  "string",
  "Path of a model repository: a directory, or an s3://, gs:// or as:// path in tritonserver's form. May be given " +
    "several times.",
  (path) => path,
  { completes: "directory" },
);

/** Options of the model repository. */
export const repositoryOptions = {
  "Model Repository": {
    "model-store": { ...repository, description: "Alias of --model-repository." },
    "model-repository": repository,
    "exit-on-error": boolean("Exit when anything fails during the start.", true),
    "disable-auto-complete-config": flag(
      "Do not complete model configurations from the model files. Each model then needs a complete config.pbtxt.",
    ),
    "strict-readiness": boolean(
      "If true, /v2/health/ready reports ready only while all models are available.",
      true,
    ),
    "model-control-mode": value(
      "string",
      '"none" loads all models at the start. "poll" also applies changes in the repository. "explicit" loads the ' +
        "models of --load-model at the start, and others on request.",
      "none",
      readChoice<ModelControlMode>(
        { none: true, poll: true, explicit: true },
        "invalid argument for --model-control-mode",
      ),
      { completes: ["none", "poll", "explicit"] },
    ),
    "repository-poll-secs": integer("Interval between polls in seconds, for --model-control-mode=poll.", 15),
    "load-model": list(
      "string",
      "Model to load at the start, for --model-control-mode=explicit. May be given several times; * loads all models.",
      (name) => name,
    ),
    "model-config-name": value(
      "string",
      "Use configs/<name>.pbtxt of a model instead of its config.pbtxt, if it exists.",
      "",
      readConfigName,
    ),
    "model-load-thread-count": integer("Number of models that load at the same time.", 4),
    "model-load-retry-count": integer("Number of retries after a failed load.", 0),
    "model-namespacing": boolean("Allow models of the same name in different repositories.", false),
    "enable-peer-access": boolean("Memory access between GPUs.", true, {
      noEffect: "the providers of ONNX Runtime manage this access",
    }),
  },
  Backend: {
    "backend-directory": text(
      "Directory of backends that models share: <backend>/model.py, or <backend>/backend.js. Shared libraries in it are " +
        "not loaded.",
      "/opt/tritonserver/backends",
      { completes: "directory" },
    ),
  },
  "Repository Agent": {
    "repoagent-directory": text("Directory of shared libraries of repository agents.", "", {
      noEffect: "repository agents are JavaScript modules, not shared libraries",
    }),
  },
};

function readConfigName(name: string): string {
  if (name === "") throw new OptionError("Error: empty argument for --model-config-name");
  return name;
}
