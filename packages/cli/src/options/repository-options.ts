import type { ModelControlMode } from "@tritonjs/core/types";
import { boolean, flag, integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { readChoice } from "./read-value.js";

const repository = list(
  "string",
  "Path of a model repository: a directory, or s3://, gs:// and as:// paths as tritonserver has them. May be given " +
    "several times.",
  (path) => path,
);

/** Options of the model repository. */
export const repositoryOptions = {
  "Model Repository": {
    "model-store": { ...repository, description: "The same as --model-repository." },
    "model-repository": repository,
    "exit-on-error": boolean("End the server when something fails while it starts.", true),
    "disable-auto-complete-config": flag(
      "Do not complete model configurations from the model files: config.pbtxt must be there, and whole.",
    ),
    "strict-readiness": boolean(
      "If true, /v2/health/ready says ready only while all models are available.",
      true,
    ),
    "model-control-mode": value(
      "string",
      '"none": all models are loaded at the start. "poll": changes in the repository are followed. "explicit": ' +
        "only models of --load-model are loaded, others on request.",
      "none",
      readChoice<ModelControlMode>(
        { none: true, poll: true, explicit: true },
        "invalid argument for --model-control-mode",
      ),
    ),
    "repository-poll-secs": integer("Seconds between two polls, for --model-control-mode=poll.", 15),
    "load-model": list(
      "string",
      "Model to load at the start, for --model-control-mode=explicit. May be given several times; * alone for all.",
      (name) => name,
    ),
    "model-config-name": value(
      "string",
      "Use configs/<name>.pbtxt of a model instead of its config.pbtxt.",
      "",
      readConfigName,
    ),
    "model-load-thread-count": integer("Models that are loaded at the same time.", 4),
    "model-load-retry-count": integer("How often a failed load is tried again.", 0),
    "model-namespacing": boolean(
      "Serve models of the same name when they are in different repositories.",
      false,
    ),
    "enable-peer-access": boolean("Memory access between GPUs.", true, {
      noEffect: "the providers of ONNX Runtime see to it",
    }),
  },
  Backend: {
    "backend-directory": text("Directory of shared libraries of backends.", "", {
      noEffect: "backends are JavaScript modules, not shared libraries",
    }),
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
