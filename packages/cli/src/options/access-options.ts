import { HostRule } from "@tritonjs/core/frontend";
import { boolean, list, text, value } from "./option.js";
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
    "allowed-host": list(
      "name",
      "Name under which browsers may use the server, such as triton.example.com, or .example.com with all names below it; " +
        "* for any. Otherwise only localhost, IP addresses and names without a dot are allowed: on loopback addresses, " +
        "and where operations that change the server need no token. May be given several times.",
      readHost,
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

function readHost(name: string): string {
  if (name === "*") return name;
  try {
    new HostRule([name]);
    return name;
  } catch {
    throw new OptionError(`expected * or a name such as triton.example.com, without a port, got ${name}`);
  }
}

function readCompatibility(name: string): Compatibility {
  if (name === "triton" || name === "") return name;
  throw new OptionError(`expected triton, got ${name}`);
}
