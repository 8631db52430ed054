import type { CommandCase } from "../support/cli/command-case.js";
import { pattern } from "../support/cli/command-output.js";
import type { Difference, Draft } from "./difference.js";

type CommandDifference = Difference<CommandCase>;

const STARTED = [
  'I "Started GRPCInferenceService at 127.0.0.1:9131"',
  'I "Started HTTPService at 127.0.0.1:9130"',
  'I "Started Metrics Service at 127.0.0.1:9132"',
];

/** The command serves until it is stopped. */
function serve(draft: Draft<CommandCase>, warnings: readonly string[]): void {
  for (const field of ["exit_code", "output_before_usage", "output_after_usage"] as const)
    delete draft[field];
  draft.outcome = "running";
  draft.exit_code_after_sigterm = 0;
  draft.output = [...warnings, ...STARTED, "Signal (15) received."];
}

/** The command is rejected before it starts anything, and prints its help before the given lines. */
function refuse(draft: Draft<CommandCase>, lines: readonly string[]): void {
  for (const field of ["output", "probes", "exit_code_after_sigterm", "output_shape"] as const)
    delete draft[field];
  Object.assign(draft, {
    outcome: "exited",
    exit_code: 1,
    output_before_usage: [],
    output_after_usage: [...lines],
  });
}

/** The server ends before it serves. */
function endWith(draft: Draft<CommandCase>, lines: readonly string[]): void {
  for (const field of ["probes", "exit_code_after_sigterm"] as const) delete draft[field];
  Object.assign(draft, { outcome: "exited", exit_code: 1, output: [...lines] });
}

function optionOf({ args }: CommandCase | Draft<CommandCase>, option: string): string | undefined {
  return args.find((arg) => arg.startsWith(`--${option}=`))?.slice(option.length + 3);
}

const help: CommandDifference = {
  rule: "help-exit-code",
  applies: ({ options }) => options !== undefined,
  amend(draft) {
    draft.exit_code = 0;
  },
};

const NEWER =
  /unrecognized option '--(trace-[\w-]+|allow-sagemaker|allow-vertex-ai|sagemaker-[\w-]+|vertex-ai-[\w-]+|allow-client-shm)/;

function newerOption({
  outcome,
  output_before_usage: lines = [],
}: CommandCase | Draft<CommandCase>): string | undefined {
  return outcome === "exited" ? lines.map((line) => NEWER.exec(line)?.[1]).find(Boolean) : undefined;
}

/** Options that the recorded build was made without. */
const newerOptions: CommandDifference = {
  rule: "newer-options",
  applies: (recorded) => newerOption(recorded) !== undefined,
  amend(draft) {
    const option = newerOption(draft) as string;
    const value = optionOf(draft, option) ?? "";
    if (option === "trace-config" && !/^([a-z]+,)?[a-z]+=/.test(value)) {
      const format = "--trace-config option format is '<trace mode>,<setting>=<value>'.";
      refuse(draft, ['Bad option: "--trace-config".', `${format} Got ${value}`]);
    } else if (option.startsWith("trace-") && option !== "trace-config") {
      const text = `Warning: '--${option}' has been deprecated and will be removed in future releases. Please use '--trace-config`;
      serve(draft, [pattern(text)]);
    } else if (/thread-count$/.test(option))
      serve(draft, [pattern(`Warning: '--${option}' has no effect: `)]);
    else {
      serve(draft, []);
      const isCloud = option === "allow-sagemaker" && value === "true";
      if (isCloud) draft.output?.splice(-1, 0, pattern('I "Started Sagemaker HTTPService at 127.0.0.1:'));
    }
  },
};

const WITHOUT_EFFECT =
  /^--(cuda-virtual-address-size|buffer-manager-thread-count|min-supported-compute-capability|grpc-infer-thread-count|grpc-infer-allocation-pool-size|grpc-max-response-pool-size|http-thread-count|enable-peer-access|model-load-gpu-limit)=/;

/** Options without effect here, on a command that serves or that crashed. */
function withoutEffect({ args, outcome, exit_code: code }: CommandCase | Draft<CommandCase>): string[] {
  const serves = outcome === "running" || code !== 1;
  return serves ? args.flatMap((arg) => WITHOUT_EFFECT.exec(arg)?.[1] ?? []) : [];
}

const optionsWithoutEffect: CommandDifference = {
  rule: "options-without-effect",
  applies: (recorded) => recorded.options === undefined && withoutEffect(recorded).length > 0,
  amend(draft) {
    const warnings = withoutEffect(draft).map((option) => pattern(`Warning: '--${option}' has no effect: `));
    if (draft.outcome === "exited") serve(draft, warnings);
    else draft.output = [...warnings, ...(draft.output ?? [])];
  },
};

const SERVICES: Readonly<Record<string, string>> = { http: "HTTP", grpc: "GRPC", metrics: "metrics" };

/** A port that is a number but not a valid port. */
function badPort({ args }: CommandCase | Draft<CommandCase>): { service: string; port: number } | undefined {
  return args
    .flatMap((arg) => {
      const [, service = "", text = ""] = /^--(http|grpc|metrics)-port=\s*([-+]?\d+)/.exec(arg) ?? [];
      return service === "" ? [] : [{ service, port: Number(text) }];
    })
    .find(({ port }) => port < 0 || port > 65535);
}

const portRange: CommandDifference = {
  rule: "port-range",
  applies: (recorded) => recorded.outcome === "running" && badPort(recorded) !== undefined,
  amend(draft) {
    const { service, port } = badPort(draft) as { service: string; port: number };
    refuse(draft, [`port for ${SERVICES[service]}: expected 0 to 65535, got ${port}`]);
  },
};

const FAILED_METRICS = /^E \S+\] "failed to start Metrics service: /;

/** A requested feature that the server does not have keeps it from starting. */
const allOrNothing: CommandDifference = {
  rule: "all-or-nothing-start",
  applies: (recorded) => recorded.outcome === "running" && undoable(recorded) !== undefined,
  amend: (draft) => undoable(draft)?.(),
};

function undoable(draft: CommandCase | Draft<CommandCase>): (() => void) | undefined {
  const target = draft as Draft<CommandCase>;
  const failure = draft.output?.find((line) => FAILED_METRICS.test(line));
  if (failure !== undefined) return () => endWith(target, [failure]);
  const file = optionOf(draft, "log-file");
  if (file?.startsWith("/nonexistent")) {
    const text = `error: creating server: Invalid argument - failed to open log file '${file}'`;
    return () => endWith(target, [text]);
  }
  const [, resource, count] = /^(\w+):(-\d+)/.exec(optionOf(draft, "rate-limit-resource") ?? "") ?? [];
  if (count !== undefined) {
    const name = `(${resource}|${resource?.toLowerCase()})`;
    return () =>
      endWith(target, [
        pattern(
          "error: creating server: Invalid argument - ",
          `expected a non-negative integer as the count of '${name}', got ${count}`,
        ),
      ]);
  }
  for (const option of ["http-header-forward-pattern", "grpc-header-forward-pattern"]) {
    const value = optionOf(draft, option);
    if (value !== undefined && !isPattern(value)) {
      return () =>
        refuse(target, [`Bad option: "--${option}".`, pattern("", "(Invalid|invalid|missing)[\\s\\S]*\\[")]);
    }
  }
  return undefined;
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text.replace(/\(\?[a-z-]+\)/g, ""));
    return true;
  } catch {
    return false;
  }
}

/** Differences from the command line of the recorded server. */
export const commandDifferences: readonly CommandDifference[] = [
  help,
  newerOptions,
  optionsWithoutEffect,
  portRange,
  allOrNothing,
];
