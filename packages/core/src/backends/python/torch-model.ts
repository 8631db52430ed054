import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import type { BackendFactory, ModelSource } from "../../instance/backend.js";
import { findModelFile } from "../model-file.js";
import { pythonModel } from "./repository-model.js";

const PROGRAM = fileURLToPath(new URL("../../../python/tritonjs_torch/model.py", import.meta.url));

/** Parameters without effect in a process of its own, with the reasons. */
const NO_EFFECT: Readonly<Record<string, string>> = {
  ENABLE_WEIGHT_SHARING: "each instance is a process with weights of its own",
};

/**
 * The backend `pytorch` for models of a repository: `<version>/model.pt`, a TorchScript file, or with
 * `runtime: "model.py"` a module with a class of `torch.nn.Module`. Each instance is a process of `python3` with torch,
 * which gets the requests of a batch as one.
 */
export const pytorchBackend: BackendFactory = async (source) => {
  const { name, config } = source;
  if (config.platform === "torch_aoti") throw notArchive(name);
  if (config.runtime === "model.py") await findModelFile(source, ["model.py", "model.pt"]);
  else await findModelFile(source, ["model.pt"]);
  warnOfUnused(source);
  const program = { path: PROGRAM, backendName: "pytorch", isShared: true, takesBatches: true };
  return { ...(await pythonModel(source, program)), platform: "pytorch_libtorch" };
};

function warnOfUnused({ name, config, warn }: ModelSource): void {
  for (const [key, why] of Object.entries(NO_EFFECT)) {
    if (Object.hasOwn(config.parameters, key))
      warn(`model '${name}': parameter '${key}' has no effect: ${why}`);
  }
}

function notArchive(name: string): TritonError {
  return new TritonError(
    "UNSUPPORTED",
    `model '${name}' is compiled ahead of time (torch_aoti, model.pt2), which is not supported: save it as TorchScript, ` +
      "torch.jit.trace(model, example).save('model.pt'), and set platform: \"pytorch_libtorch\"",
    { reason: "MODEL_NOT_SUPPORTED" },
  );
}
