import type { ModelControl } from "../backend.js";
import type { JsModelControl } from "./js-model.js";

/** A model's request to the server's repository. */
export type ControlAsk =
  | {
      readonly what: "load";
      readonly name: string;
      readonly config?: string | undefined;
      readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
    }
  | { readonly what: "unload"; readonly name: string; readonly unloadDependents?: boolean | undefined }
  | { readonly what: "ready"; readonly name: string; readonly version: string };

/** Creates a model's control of other models; `ask` receives its requests. */
export function modelControl(ask: (ask: ControlAsk) => Promise<unknown>): JsModelControl {
  return {
    loadModel: async (name, { config, files } = {}) => {
      await ask({ what: "load", name, config, files });
    },
    unloadModel: async (name, { unloadDependents } = {}) => {
      await ask({ what: "unload", name, unloadDependents });
    },
    isModelReady: async (name, version) =>
      (await ask({ what: "ready", name, version: version === undefined ? "" : String(version) })) === true,
  };
}

/** Executes a model's request. @throws TritonError like `Triton.loadModel` and `Triton.unloadModel` */
export async function answerControl(control: ModelControl, ask: ControlAsk): Promise<boolean | undefined> {
  if (ask.what === "ready") return control.isReady(ask.name, ask.version);
  if (ask.what === "unload") await control.unload(ask.name, ask);
  else await control.load(ask.name, ask);
  return undefined;
}
