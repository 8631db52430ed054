import { TritonError } from "@tritonjs/protocol";

/** Port of an address that names none. */
export const DEFAULT_HTTP_PORT = 8000;

/**
 * Completes the address of a server: `http://localhost:8000/`. Without a scheme it is HTTP, with the default port 8000.
 *
 * @throws TritonError INVALID_ARG for an invalid HTTP address.
 */
export function serverUrl(url: string): string {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(url);
  let parsed: URL;
  try {
    parsed = new URL(bare ? `http://${url}` : url);
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid url '${url}'`, { reason: "INVALID_OPTION", cause });
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new TritonError("INVALID_ARG", `invalid url '${url}': expected http or https`, {
      reason: "INVALID_OPTION",
    });
  }
  if (parsed.username !== "" || parsed.password !== "") {
    throw new TritonError("INVALID_ARG", "invalid url: it holds credentials; give them as headers", {
      reason: "INVALID_OPTION",
    });
  }
  if (bare && parsed.port === "" && !/:\d+$/.test(url.split("/")[0]!))
    parsed.port = String(DEFAULT_HTTP_PORT);
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}/`;
}

/** The path of an action on a model; the empty action is the model itself. */
export function modelPath(name: string, version: string | number | undefined, action: string): string {
  const parts = ["v2/models", segment("model name", name)];
  if (version !== undefined && version !== "")
    parts.push("versions", segment("model version", String(version)));
  if (action !== "") parts.push(action);
  return parts.join("/");
}

/** The path of an action on system or CUDA shared memory; the empty region means all regions. */
export function sharedMemoryPath(kind: "system" | "cuda", region: string, action: string): string {
  const part = region === "" ? "" : `/region/${segment("region name", region)}`;
  return `v2/${kind}sharedmemory${part}/${action}`;
}

/** Encodes text as one segment of a path. Dots would lead out of the path. */
export function segment(what: string, text: string): string {
  if (text === "" || text === "." || text === "..") {
    throw new TritonError("INVALID_ARG", `invalid ${what} '${text}'`);
  }
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid ${what}: it has an unpaired surrogate`, { cause });
  }
}
