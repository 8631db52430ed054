import { OptionError } from "./option-error.js";
import type { ReadOptions } from "./option-values.js";
import type { OptionValues } from "./options.js";

/**
 * Checks options against each other.
 *
 * @throws OptionError with tritonserver's text.
 */
export function checkOptions({ values, given }: ReadOptions): void {
  if (values["load-model"].length > 0 && values["model-control-mode"] !== "explicit") {
    throw new OptionError(
      "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
    );
  }
  if (given.has("response-cache-byte-size") && given.has("cache-config")) {
    throw new OptionError(
      "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one " +
        "or the other.",
    );
  }
  checkPorts(values);
  for (const { key } of values["host-policy"]) {
    if (key !== "numa-node" && key !== "cpu-cores") {
      throw triton(
        `setting host policy: Unsupported - Unsupported host policy setting '${key}' is specified, supported ` +
          "settings are 'numa-node', 'cpu-cores'",
      );
    }
  }
  for (const [, fraction] of values["model-load-gpu-limit"]) {
    if (fraction < 0 || fraction > 1) {
      throw triton(
        "setting model load GPU limit: Invalid argument - expects limit fraction to be in range [0.0, 1.0], got " +
          fraction.toFixed(6),
      );
    }
  }
}

/** The address of the metrics. By default it is that of HTTP. */
export function metricsAddress(values: OptionValues): string {
  return values["metrics-address"] === "" ? values["http-address"] : values["metrics-address"];
}

function checkPorts(values: OptionValues): void {
  const services = [
    { name: "HTTP", on: values["allow-http"], address: values["http-address"], port: values["http-port"] },
    { name: "GRPC", on: values["allow-grpc"], address: values["grpc-address"], port: values["grpc-port"] },
    {
      name: "metrics",
      on: values["allow-metrics"],
      address: metricsAddress(values),
      port: values["metrics-port"],
    },
    {
      name: "OpenAI",
      on: values["openai-port"] !== undefined,
      address: values["openai-address"],
      port: values["openai-port"] ?? 0,
    },
  ].filter(({ on }) => on);
  for (const { name, port } of services) {
    if (port < 0 || port > 65535) throw new OptionError(`port for ${name}: expected 0 to 65535, got ${port}`);
  }
  services.forEach((one, index) => {
    const other = services.slice(index + 1).find(({ address, port }) => {
      return port !== 0 && address === one.address && port === one.port;
    });
    if (other === undefined) return;
    throw new OptionError(
      `The server cannot listen to ${one.name} requests and ${other.name} requests at the same address and port ` +
        `${one.address}:${one.port}`,
    );
  });
}

function triton(text: string): OptionError {
  return new OptionError(`Failed to build Triton option:\nerror: ${text}`, "alone");
}
