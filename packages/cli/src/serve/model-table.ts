import type { InferenceService } from "@tritonjs/core";
import { table } from "./table.js";

/** The models of a server, each with its version and state, as tritonserver shows them when it has started. */
export async function modelTable(service: InferenceService): Promise<string> {
  const index = await service.repositoryIndex(false);
  const rows = index.map(({ name, version = "-", state = "Not loaded", reason }) => {
    const status = [state, reason].filter((part) => part !== undefined && part !== "").join(": ");
    return [name, version, status.replaceAll("\n", " ")];
  });
  return table(["Model", "Version", "Status"], rows);
}
