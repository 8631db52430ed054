import { type Koffi, requireKoffi } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import { shortNames } from "../provider-names.js";
import { identityModel } from "./device-values.js";
import { appendProvider } from "./execution-providers.js";
import { bindOrtApi } from "./ort-c-api.js";

/*
 * The program in which the doctor opens a library, or a session, so that a crash is an answer. It prints what is wrong,
 * and nothing if all is well. Arguments: `open`, the library, and libraries that it needs to find in its process; or
 * `session`, the library of ONNX Runtime and the provider; or `describe` and the library, which prints what it is.
 */

const FLOAT = 1;

function openSession(library: string, provider: string): void {
  const api = bindOrtApi(requireKoffi(), library);
  const settings = api.read((to) => api.createSessionOptions(to));
  appendProvider(api, settings, { name: provider, options: {} });
  const model = identityModel(FLOAT);
  const at = Number(api.koffi.address(model));
  const environment = api.environment();
  api.read((to) => api.createSessionFromArray(environment, at, model.byteLength, settings, to));
}

/** Loads a library that another one needs, and which has a finding of its own if it does not open. */
function loadIfPossible(koffi: Koffi, file: string): unknown {
  try {
    return koffi.load(file, { global: true });
  } catch {
    return undefined;
  }
}

const [, , task, library, ...more] = process.argv;
try {
  if (task === "session") openSession(library!, more[0]!);
  else if (task === "describe") {
    const { version, build, providers } = bindOrtApi(requireKoffi(), library!);
    process.stdout.write(JSON.stringify({ version, build, providers: shortNames(providers) }));
  } else {
    const koffi = requireKoffi();
    const before = more.map((one) => loadIfPossible(koffi, one));
    koffi.load(library!);
    void before;
  }
} catch (error) {
  process.stdout.write(TritonError.from(error).message.split("\n")[0]!);
  process.exitCode = 1;
}
