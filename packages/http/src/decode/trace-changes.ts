import { readTraceCount, readTraceLevels, readTraceNumber, type TraceChanges } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { asArray, asText, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";

/**
 * Reads the changes of trace settings in a request; null undoes an earlier change.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the file.
 */
export function readTraceChanges(request: JsonValue | undefined): TraceChanges {
  if (find(request, "trace_file") !== undefined) {
    throw new TritonError("UNSUPPORTED", "trace file location can not be updated through network protocol", {
      reason: "SETTING_READ_ONLY",
    });
  }
  const changes: TraceChanges = {};
  const levels = find(request, "trace_level");
  if (levels === null) changes.levels = null;
  else if (levels !== undefined) {
    const named = readTraceLevels(elementsOf(asArray(levels)).map((level) => asText(level)));
    if (named !== undefined) changes.levels = named;
  }
  const rate = find(request, "trace_rate");
  if (rate !== undefined) {
    changes.rate = rate === null ? null : readTraceNumber("trace_rate", asText(rate));
  }
  const count = find(request, "trace_count");
  if (count !== undefined) changes.count = count === null ? null : readTraceCount(asText(count), "got:");
  const frequency = find(request, "log_frequency");
  if (frequency !== undefined) {
    changes.logFrequency = frequency === null ? null : readTraceNumber("log_frequency", asText(frequency));
  }
  return changes;
}
