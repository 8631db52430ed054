import { parseArgs } from "node:util";

/** Command line options of the quick start. */
export interface QuickstartOptions {
  /** End after the demonstration. */
  readonly once: boolean;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
}

/** An error in the command line. */
export class OptionError extends Error {}

/** Printed with every error that another option could avoid. */
export const USAGE = "The quick start takes --once, --http-port, --grpc-port and --metrics-port.";

/**
 * Reads the command line.
 *
 * @throws OptionError for an unknown option, and for a port that is not a number from 0 to 65535.
 */
export function readOptions(): QuickstartOptions {
  const values = parse();
  return {
    once: values.once,
    httpPort: toPort("http-port", values["http-port"]),
    grpcPort: toPort("grpc-port", values["grpc-port"]),
    metricsPort: toPort("metrics-port", values["metrics-port"]),
  };
}

function parse() {
  try {
    return parseArgs({
      options: {
        once: { type: "boolean", default: false },
        "http-port": { type: "string", default: "8000" },
        "grpc-port": { type: "string", default: "8001" },
        "metrics-port": { type: "string", default: "8002" },
      },
    }).values;
  } catch (error) {
    throw new OptionError((error as Error).message);
  }
}

function toPort(option: string, value: string): number {
  const port = Number(value);
  if (/^\d+$/.test(value) && port <= 65_535) return port;
  throw new OptionError(`--${option} takes a number from 0 to 65535, got '${value}'`);
}
