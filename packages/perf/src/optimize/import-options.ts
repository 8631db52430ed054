import type { ImportOptions } from "@tritonjs/backends/optimize";
import { isDataType } from "@tritonjs/protocol";
import type { OptionRow } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import type { OptionReader } from "../perf/option-reader.js";

/** Options of commands that read models of other frameworks. */
export const IMPORT_OPTIONS: readonly OptionRow[] = [
  ["--python <command>", "Python with torch for models of PyTorch; TRITONJS_PYTHON or python3 unless given"],
  [
    "--input-type <type>",
    "data type of an input of a PyTorch model as NAME:TYPE, FP32 unless given; may be repeated",
  ],
];

/** Reads {@link IMPORT_OPTIONS}. `--shape` belongs to the commands. */
export function readImportOptions(options: OptionReader): Pick<ImportOptions, "python" | "dtypes"> {
  const python = options.text("python");
  const types = options.texts("inputType").map((text) => {
    const at = text.lastIndexOf(":");
    const [name, type] = [text.slice(0, at), text.slice(at + 1).toUpperCase()];
    if (at > 0 && isDataType(type)) return [name, type] as const;
    throw invalidOption(`--input-type: expected NAME:TYPE such as ids:INT64, got '${text}'`);
  });
  return {
    ...(python !== undefined && { python }),
    ...(types.length > 0 && { dtypes: Object.fromEntries(types) }),
  };
}
