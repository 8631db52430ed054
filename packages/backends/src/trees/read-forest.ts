import { TritonError } from "@tritonjs/protocol";
import { type Forest, invalidModel } from "./forest.js";
import type { TreeFileOptions } from "./forest-builder.js";
import { readLightgbm } from "./lightgbm.js";
import { readTreelite } from "./treelite.js";
import { decodeUbjson } from "./ubjson.js";
import { parseXgboostJson, readXgboostDocument } from "./xgboost-document.js";
import { readXgboostLegacy } from "./xgboost-legacy.js";

/**
 * Reads a model file.
 *
 * @throws TritonError INVALID_ARG for a file that is not a valid model of its format; UNSUPPORTED for models that
 * cannot be served
 */
export function readForest(bytes: Uint8Array, type: ModelType, options: TreeFileOptions): Forest {
  switch (type) {
    case "xgboost":
      return readXgboostLegacy(bytes, options);
    case "xgboost_json":
      return readXgboostDocument(parseXgboostJson(bytes), options);
    case "xgboost_ubj":
      return readXgboostDocument(decodeUbjson(bytes), options);
    case "lightgbm":
      return readLightgbm(bytes, options);
    case "treelite_checkpoint":
      return readTreelite(bytes, options);
  }
}

/** Formats of model files by Triton's names. */
export type ModelType = "xgboost" | "xgboost_json" | "xgboost_ubj" | "lightgbm" | "treelite_checkpoint";

/** Usual file name of each format. */
export const FILE_NAMES: Readonly<Record<ModelType, string>> = {
  xgboost: "xgboost.model",
  xgboost_json: "xgboost.json",
  xgboost_ubj: "xgboost.ubj",
  lightgbm: "model.txt",
  treelite_checkpoint: "checkpoint.tl",
};

/** @throws TritonError UNSUPPORTED, in the words of Triton's backend, for the name of an unknown format */
export function modelTypeOf(name: string): ModelType {
  if (Object.hasOwn(FILE_NAMES, name)) return name as ModelType;
  throw new TritonError("UNSUPPORTED", `${name} not recognized as a valid serialization format.`, {
    reason: "MODEL_NOT_SUPPORTED",
  });
}

/**
 * Recognizes the format of a file by its first bytes.
 *
 * @throws TritonError INVALID_ARG for a file of none of the formats
 */
export function detectModelType(bytes: Uint8Array): ModelType {
  const start = Buffer.from(bytes.subarray(0, 256)).toString("latin1");
  const isTreelite = (bytes[0] === 3 || bytes[0] === 4) && start.slice(1, 4) === "\0\0\0";
  if (/^\{[NUiIlL#]/.test(start)) return "xgboost_ubj";
  if (/^\s*\{/.test(start)) return "xgboost_json";
  if (/^tree\r?\n/.test(start)) return "lightgbm";
  if (isTreelite) return "treelite_checkpoint";
  if (start.startsWith("binf") || bytes.byteLength > 136 + 16) return "xgboost";
  throw invalidModel(
    `expected a model of XGBoost, LightGBM or Treelite, got a file that begins with ${JSON.stringify(start.slice(0, 16))}`,
  );
}
