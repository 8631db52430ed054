import { readFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import type { CloudPath } from "./cloud-path.js";

/** What a storage is reached with, by Triton's names; what is empty is left to the vendor's SDK. */
export type CloudCredentials = Readonly<Record<string, string>>;

/** Names of Triton's credential file, with those of the environment. */
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
 * The credentials for a path: those of the longest name in the file `TRITON_CLOUD_CREDENTIAL_PATH` that the path begins
 * with; without that file those of the environment.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be read, NOT_FOUND for one without credentials for the path
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
    // The parser's words may quote what is in the file.
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
