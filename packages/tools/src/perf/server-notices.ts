import type { TestedModel } from "../data/tested-model.js";
import type { TargetSettings } from "./perf-settings.js";

/**
 * What a report lacks, or what may fail, because the server does not have Triton's extensions of the v2 protocol.
 *
 * @param extensions extensions in the metadata of the server
 */
export function serverNotices(
  target: TargetSettings,
  model: TestedModel | undefined,
  extensions: readonly string[],
): string[] {
  const notices: string[] = [];
  if (model?.isFromMetadata) {
    notices.push(
      `The server does not tell the configuration of model '${model.name}'. Its tensors and its batch axis are those ` +
        "of the metadata, and it counts as a model without sequences.",
    );
  }
  if (!extensions.includes("statistics")) {
    notices.push(
      "The server does not tell its statistics: it lacks the extension 'statistics' of the v2 protocol. The report has " +
        "no times of the server.",
    );
  }
  if (target.kind === "http" && !extensions.includes("binary_tensor_data") && hasBinary(target)) {
    notices.push(
      "The server does not list the extension 'binary_tensor_data' of the v2 protocol. If it refuses the requests, use " +
        "--input-tensor-format json --output-tensor-format json.",
    );
  }
  return notices;
}

function hasBinary({
  inputTensorFormat = "binary",
  outputTensorFormat = "binary",
}: Extract<TargetSettings, { kind: "http" }>): boolean {
  return inputTensorFormat === "binary" || outputTensorFormat === "binary";
}
