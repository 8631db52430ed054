import { readFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import type { CloudPath } from "./cloud-path.js";

/** The credentials of a storage, by Triton's names. The vendor's SDK finds those that are empty. */
export type CloudCredentials = Readonly<Record<string, string>>;

/** Names in Triton's credential file, with the environment variables for them. */
const ENVIRONMENT: Readonly<Record<CloudPath["scheme"], Readonly<Record<string, string>>>> = {
  s3: {
    key_id: "AWS_ACCESS_KEY_ID",
    secret_key: "AWS_SECRET_ACCESS_KEY",
    session_token: "AWS_SESSION_TOKEN",
    region: "AWS_DEFAULT_REGION",
    profile: "AWS_PROFILE",
  },
  gs: { path: "GOOGLE_APPLICATION_CREDENTIALS" },
  as: {
    account_str: "AZURE_STORAGE_ACCOUNT",
    account_key: "AZURE_STORAGE_KEY",
    auth_type: "AZURE_STORAGE_AUTH_TYPE",
    client_id: "AZURE_STORAGE_CLIENT_ID",
  },
};

/**
 * Finds the credentials for a path. In the file `TRITON_CLOUD_CREDENTIAL_PATH`, the longest name that the path begins
 * with wins. Without that file, they come from the environment.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be read, NOT_FOUND for a file without credentials for the path
 */
export async function findCredentials(
  { scheme, text }: CloudPath,
  environment: NodeJS.ProcessEnv,
): Promise<CloudCredentials> {
  const file = environment.TRITON_CLOUD_CREDENTIAL_PATH;
  if (file === undefined || file === "") {
    return mapValues(ENVIRONMENT[scheme], (name) => environment[name] ?? "");
  }
  const sections = Object.entries(asObject(asObject(await readJson(file))[scheme]));
  const found = sections.filter(([name]) => text.startsWith(name)).sort(([a], [b]) => b.length - a.length)[0];
  if (found === undefined) {
    throw new TritonError("NOT_FOUND", `Cannot match credential for path  ${text}`, {
      reason: "MISSING_CREDENTIALS",
    });
  }
  const [, values] = found;
  if (typeof values === "string") return { path: values };
  const given = asObject(values);
  return mapValues(ENVIRONMENT[scheme], (_, key) => {
    const value = given[key];
    return typeof value === "string" ? value : "";
  });
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    // The parser's message may quote the file.
    const why = cause instanceof SyntaxError ? "it is not JSON" : TritonError.from(cause).message;
    const text = `cannot read the cloud credentials ${file} (TRITON_CLOUD_CREDENTIAL_PATH): ${why}`;
    throw new TritonError("INVALID_ARG", text, { reason: "INVALID_REPOSITORY" });
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function mapValues(
  names: Readonly<Record<string, string>>,
  map: (value: string, key: string) => string,
): CloudCredentials {
  return Object.fromEntries(Object.entries(names).map(([key, value]) => [key, map(value, key)]));
}
