import { TritonError } from "@tritonjs/protocol";
import type { ModelTimes } from "../layout/model-times.js";
import type { CloudPath } from "./cloud-path.js";
import type { CloudObject } from "./cloud-storage.js";
import { shownKey } from "./list-objects.js";

/** A file of a model, or a folder. */
export interface ModelObject extends CloudObject {
  /** Path in the model's directory, with slashes; empty for the directory itself. */
  readonly path: string;
}

/** The objects of a model in the cloud. */
export interface ModelListing {
  readonly name: string;
  /** Ordered by path. */
  readonly objects: readonly ModelObject[];
  /** Why the model cannot be copied. */
  readonly problem: TritonError | undefined;
}

/** Groups objects by model. A model is a folder of the repository that is not hidden. */
export function groupByModel(
  repository: CloudPath,
  objects: readonly CloudObject[],
): Map<string, ModelListing> {
  const models = new Map<
    string,
    { name: string; objects: ModelObject[]; problem: TritonError | undefined }
  >();
  for (const object of objects) {
    const relative = object.key.slice(repository.prefix.length);
    const end = relative.indexOf("/");
    const name = end < 0 && object.isFolder ? relative : relative.slice(0, Math.max(0, end));
    if (name === "" || name.startsWith(".") || !isName(name)) continue;
    const model = models.get(name) ?? { name, objects: [], problem: undefined };
    models.set(name, model);
    const path = relative.slice(name.length + 1).replace(/\/$/, "");
    if (path !== "" && !path.split("/").every(isName)) {
      model.problem ??= new TritonError(
        "INVALID_ARG",
        `object '${shownKey(repository, object.key)}' has an invalid path in the directory of model '${name}': rename or remove it`,
        { reason: "INVALID_REPOSITORY" },
      );
    }
    model.objects.push({ ...object, path });
  }
  for (const { objects } of models.values()) objects.sort((a, b) => (a.path < b.path ? -1 : 1));
  return models;
}

/** Whether a name can be a file inside a directory on any system. A name that leads out of the directory cannot. */
function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[\\\0]/.test(name);
}

/** Whether two lists have the same objects. */
export function isSame(before: readonly ModelObject[], now: readonly ModelObject[]): boolean {
  return (
    before.length === now.length && before.every((object, i) => signatureOf(object) === signatureOf(now[i]!))
  );
}

/**
 * The state of a model, in the form that `readModelTimes` returns for a directory.
 *
 * @param configEntry first part of the path of its configuration
 */
export function timesOf(objects: readonly ModelObject[], configEntry: string): ModelTimes {
  const entries = new Map<string, string[]>();
  for (const object of objects) {
    const [entry = ""] = object.path.split("/");
    const signatures = entries.get(entry) ?? [];
    entries.set(entry, signatures);
    signatures.push(signatureOf(object));
  }
  const versions = new Map<string, string>();
  const others: string[] = [];
  let config = "";
  for (const [entry, signatures] of entries) {
    const signature = signatures.join("\n");
    if (/^\d+$/.test(entry)) versions.set(entry, signature);
    else if (entry === configEntry) config = signature;
    else if (entry !== "") others.push(signature);
  }
  return { versions, config, others: others.join("\n") };
}

function signatureOf({ path, etag, sizeBytes, isFolder }: ModelObject): string {
  return isFolder ? `${path}/` : `${path} ${sizeBytes} ${etag}`;
}
