import { invalidModel, notSupported } from "../forest/invalid-model.js";

/** Numbers that JSON does not have, and that XGBoost writes for statistics that are not finite. */
const NOT_JSON = /(?<=[[,:]\s*)-?(?:NaN|nan|Infinity|inf)(?=\s*[\],}])/g;

/**
 * Parses the text of `Booster.save_model("model.json")`.
 *
 * @throws TritonError INVALID_ARG for text that is not JSON; UNSUPPORTED for more than V8's longest string
 */
export function parseXgboostJson(bytes: Uint8Array): unknown {
  const text = textOf(bytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    const replaced = text.replace(NOT_JSON, (found) => {
      if (/nan/i.test(found)) return "null";
      return found.startsWith("-") ? "-1e999" : "1e999";
    });
    try {
      return JSON.parse(replaced);
    } catch {
      throw invalidModel(`XGBoost JSON: expected JSON: ${(error as Error).message}`);
    }
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: false }).decode(bytes);
  } catch {
    throw notSupported(
      `XGBoost JSON: expected less than 512 MB, got ${bytes.byteLength} bytes; save the model as model.ubj`,
    );
  }
}
