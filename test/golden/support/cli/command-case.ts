import type { CallStep, Files } from "../lifecycle/scenario.js";

/** A request to a running server, and its answer. */
export interface Probe extends CallStep {
  readonly status: number;
  readonly response: unknown;
}

/** One line of `config/cli.jsonl`. */
export interface CommandCase {
  readonly id: string;
  readonly args: readonly string[];
  /** Whether the launcher puts the repository, addresses and ports in front of `args`. */
  readonly launcher_defaults: boolean;
  readonly repository?: Files;
  /** Set-up before the command: a port was taken. */
  readonly before?: string;
  readonly outcome: "exited" | "running";
  readonly exit_code?: number;
  readonly output?: readonly string[];
  readonly output_before_usage?: readonly string[];
  readonly output_after_usage?: readonly string[];
  /** Names of options in the help. */
  readonly options?: readonly string[];
  /** Lines of the log with digits as 9. */
  readonly output_shape?: readonly string[];
  readonly http_answers?: boolean;
  readonly probes?: readonly Probe[];
  readonly exit_code_after_sigterm?: number;
}

/** The repository of cases that have none of their own. */
export const defaultRepository: Files = {
  "a/1/": "",
  "a/config.pbtxt":
    'backend: "identity"\nmax_batch_size: 8\ninput [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n' +
    'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
};

/** Ports of the recorded server, by option. */
export const RECORDED_PORTS: Readonly<Record<string, string>> = {
  "http-port": "9130",
  "grpc-port": "9131",
  "metrics-port": "9132",
};

/** The whole command line, with a folder for the repository. */
export function commandLine({ args, launcher_defaults }: CommandCase, repository: string): string[] {
  const defaults = [
    `--model-repository=${repository}`,
    ...Object.entries(RECORDED_PORTS).map(([option, port]) => `--${option}=${port}`),
    "--http-address=127.0.0.1",
    "--grpc-address=127.0.0.1",
    "--metrics-address=127.0.0.1",
  ];
  const given = args
    .filter((arg) => !arg.startsWith("--backend-directory="))
    .map((arg) => arg.replace("<REPO>", repository));
  return [...(launcher_defaults ? defaults : []), ...given];
}

/** The command line with free ports instead of the recorded ones. */
export function onFreePorts(args: readonly string[]): string[] {
  return args.map((arg) => arg.replace(/=913[012]$/, "=0"));
}
