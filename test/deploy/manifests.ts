import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseAllDocuments } from "yaml";
import { repositoryRoot } from "../support/repository.js";

/** A Kubernetes object, or a part of one. */
// biome-ignore lint/suspicious/noExplicitAny: tests read paths of manifests of all kinds.
export type Manifest = any;

/** The documents of a YAML file. */
export function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS();
    })
    .filter((object) => object !== null);
}

/** YAML files below a folder of `deploy`, with their documents. */
export function manifestsIn(folder: string): { readonly path: string; readonly objects: Manifest[] }[] {
  const root = join(repositoryRoot, "deploy", folder);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((file) => ({
      path: relative(join(repositoryRoot, "deploy"), file),
      objects: documentsOf(readFileSync(file, "utf8")),
    }));
}

/** A server that a manifest starts. */
export interface StartedServer {
  readonly path: string;
  readonly container: Manifest;
  /** Seconds that the platform gives the server to stop; undefined if another object says so. */
  readonly graceSeconds: number | undefined;
}

/** The servers that Kubernetes objects start. */
export function serversOf(path: string, objects: readonly Manifest[]): StartedServer[] {
  return objects.flatMap(({ kind, spec }) => {
    const pod =
      kind === "Deployment" ? spec.template.spec : kind === "ClusterServingRuntime" ? spec : undefined;
    return (pod?.containers ?? []).map((container: Manifest) => ({
      path,
      container,
      graceSeconds: pod.terminationGracePeriodSeconds,
    }));
  });
}
