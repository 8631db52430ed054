import { TritonError } from "@tritonjs/core";
import { type Behaviour, identity, toInferFunc } from "./behaviours/behaviour.js";
import { decoupledBehaviours, toDecoupledFunc } from "./behaviours/decoupled.js";
import type { Files } from "./lifecycle/scenario.js";
import type { PlayPython } from "./played-python.js";
import type { RecordedModel } from "./served-models.js";

/** The files of a repository with recorded models. */
export function repositoryFiles(models: Readonly<Record<string, RecordedModel>>): Files {
  const files: Record<string, string> = {};
  for (const [name, model] of Object.entries(models)) {
    files[`${name}/config.pbtxt`] = model.config_pbtxt;
    for (const [path, text] of Object.entries(model.files ?? {})) files[`${name}/${path}`] = text;
    const hasCode = /backend:\s*"python"/.test(model.config_pbtxt);
    for (const version of versionsOf(model)) {
      files[`${name}/${version}/${hasCode ? "model.py" : ""}`] = model.behaviour ?? "";
    }
  }
  return files;
}

function versionsOf({ versions, behaviour = "" }: RecordedModel): readonly number[] {
  return /^No version (directory|folder)/.test(behaviour) ? [] : (versions ?? [1]);
}

/** The recorded Python models: `models.json` describes their code in words, and it is played by name. */
export function pythonOfModels(behaviours: Readonly<Record<string, Behaviour>>): PlayPython {
  return (code, { name, config }) => {
    if (/cannot start/.test(code)) throw new TritonError("INTERNAL", "RuntimeError: cannot start");
    const decoupled = config.modelTransactionPolicy?.decoupled ? decoupledBehaviours[name] : undefined;
    if (decoupled !== undefined) return (model) => toDecoupledFunc(decoupled, model);
    return (model) => toInferFunc(behaviours[name] ?? identity, model);
  };
}
