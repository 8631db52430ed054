import { resolve } from "node:path";
import { type CloudPath, isCloudPath, parseCloudPath } from "../cloud/cloud-path.js";
import { CloudSource, type CloudSourceContext } from "../cloud/cloud-source.js";
import { LocalSource } from "./local-source.js";
import type { RepositorySource } from "./repository-source.js";

/**
 * Opens the repositories at paths, each once, in the given order.
 *
 * @throws TritonError INVALID_ARG for an invalid cloud path
 */
export function openSources(paths: readonly string[], context: CloudSourceContext): RepositorySource[] {
  const places = new Map<string, CloudPath | undefined>();
  for (const path of paths) {
    const cloud = isCloudPath(path) ? parseCloudPath(path) : undefined;
    // An empty path is not a directory; resolved, it would be the current one.
    places.set(cloud?.text ?? (path === "" ? path : resolve(path)), cloud);
  }
  return [...places].map(([path, cloud]) =>
    cloud === undefined ? new LocalSource(path) : new CloudSource(cloud, context),
  );
}
