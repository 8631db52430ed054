import type { Forest } from "../forest/forest.js";
import { decodeUbjson } from "../formats/ubjson.js";
import { parseXgboostJson } from "../formats/xgboost-json.js";
import { readLightgbm } from "./lightgbm.js";
import type { ModelType } from "./model-type.js";
import type { TreeFileOptions } from "./tree-file-options.js";
import { readTreelite } from "./treelite.js";
import { readXgboostDocument } from "./xgboost-document.js";
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
