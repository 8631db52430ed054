import { readFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import {
  type AutoCompleteConfig,
  COMPLETION_METHODS,
  completeBy,
} from "../../config/complete/auto-complete-config.js";
import { toConfigJson } from "../../config/schema/config-json.js";
import type { Log } from "../../observe/log/log.js";
import { type FromPython, writeError } from "./messages.js";
import { PythonSession, type PythonSettings } from "./python-session.js";

/** A class that inherits nothing, in a file that does not say the name of the method, does not have it. */
const PLAIN_CLASS = /^class\s+TritonPythonModel\s*(\(\s*(object)?\s*\))?\s*:/m;
const METHOD = "auto_complete_config";

/** False for a model of which its source says that it does not complete its configuration. */
export function mayCompleteItself(source: string): boolean {
  return !PLAIN_CLASS.test(source) || source.includes(METHOD);
}

/**
 * Has `auto_complete_config` of a model complete its configuration, in a process of its own. Each call that the method
 * makes is made here: there is one place for the rules.
 *
 * @throws TritonError INTERNAL for a file that cannot be imported and for what the method raises
 */
export async function completeWithPython(
  config: AutoCompleteConfig,
  settings: PythonSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  if (!mayCompleteItself(await readFile(settings.path, "utf8"))) return;
  const { name } = config.config;
  const session: PythonSession = new PythonSession({
    settings,
    modelName: name,
    name,
    clock,
    log,
    init: { type: "complete", path: settings.path, model: name, config: configJsonOf(config) },
    message: (message) => change(session, config, message),
    crashed: () => {},
  });
  try {
    await session.ready;
  } finally {
    session.kill();
    await session.ended;
  }
}

function change(session: PythonSession, config: AutoCompleteConfig, message: FromPython): void {
  if (message.type !== "change") return;
  const answer = { type: "answer", call: message.call };
  try {
    const how = COMPLETION_METHODS.find((one) => one === message.how);
    if (how === undefined)
      throw new TritonError("INTERNAL", `unknown change '${message.how}' of a model configuration`);
    completeBy(config, how, camelCase(message.arguments[0]));
    session.send({ ...answer, value: toConfigJson(config.config) });
  } catch (error) {
    session.send({ ...answer, error: writeError(error) });
  }
}

/** The tensors of a model are named in Python's way. */
function camelCase(argument: unknown): unknown {
  if (typeof argument !== "object" || argument === null) return argument;
  const { data_type: dataType, ...rest } = argument as Record<string, unknown>;
  return dataType === undefined ? rest : { ...rest, dataType };
}

/** The configuration as a model is told of it. */
export function configJsonOf({ config }: Pick<AutoCompleteConfig, "config">): string {
  return JSON.stringify(toConfigJson(config));
}
