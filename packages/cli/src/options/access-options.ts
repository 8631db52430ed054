import { boolean, text, value } from "./option.js";
import { OptionError } from "./option-error.js";

/** A server whose defaults for access the command takes over. */
export type Compatibility = "" | "triton";

/** Options that decide who may change the server. */
export const accessOptions = {
  Access: {
    "access-token": text(
      "Secret that clients send to use operations that change the server, in the header triton-access-token (gRPC: " +
        "triton-grpc-protocol-triton-access-token). Other users of the machine see command lines, so set " +
        "TRITONJS_ACCESS_TOKEN instead.",
      "",
    ),
    "allow-model-file-override": boolean(
      "Allow clients to send the files of a model with a load request. A file can be code that the server runs.",
      false,
    ),
    compat: value<Compatibility>(
      "string",
      '"triton" opens operations that change the server to everyone, and allows the files of load requests, as ' +
        "tritonserver does. A warning says what is open.",
      "",
      readCompatibility,
      { completes: ["triton"] },
    ),
  },
};

function readCompatibility(name: string): Compatibility {
  if (name === "triton" || name === "") return name;
  throw new OptionError(`expected triton, got ${name}`);
}
