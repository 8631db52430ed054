import { statusText, TritonError } from "@tritonjs/protocol";
import { type Command, CommanderError, Option } from "commander";

/** The input and output of a command. */
export interface ToolTerminal {
  write(text: string): void;
  writeError(text: string): void;
  /** Standard error is a terminal, whose line can be written over. @default false */
  readonly isInteractive?: boolean;
  /** Width of the terminal in characters. */
  readonly columns?: number | undefined;
  /**
   * Resolves when the process is asked to stop. The second request ends the process at once.
   *
   * @param secondExitCode exit code after the second request
   */
  stopRequested?(secondExitCode?: number): Promise<unknown>;
}

/** Clears the line of a terminal and goes to its start. */
export const CLEAR_LINE = "\r\x1b[2K";

/** Exit codes of `tritonjs perf` and `tritonjs analyze`. Those from 2 on are perf_analyzer's, except for the interruption. */
export const EXIT = {
  ok: 0,
  notMet: 1,
  unstable: 2,
  noRequests: 3,
  error: 99,
  interrupted: 130,
} as const;

/** Parses the arguments, which runs the actions of subcommands, then runs `action`. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  { terminal, faultCode }: { readonly terminal: ToolTerminal; readonly faultCode: number },
  action: () => Promise<number> | number,
): Promise<number> {
  for (const one of withSubcommands(command)) {
    one.exitOverride().configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.writeError(text),
    });
  }
  try {
    await command.parseAsync(args, { from: "user" });
    return await action();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : faultCode;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return faultCode;
  }
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/** Listens for the request to stop. */
export function stopSignal(
  terminal: ToolTerminal,
  end: string,
): { readonly signal: AbortSignal; readonly stopped: Promise<void> } {
  const stop = new AbortController();
  const requested = terminal.stopRequested?.(EXIT.interrupted) ?? new Promise(() => {});
  const stopped = requested.then(() => {
    terminal.writeError(
      `${terminal.isInteractive ? CLEAR_LINE : ""}Interrupted: ${end}. A second Ctrl-C ends the command at once.\n`,
    );
    stop.abort();
  });
  return { signal: stop.signal, stopped };
}

export type OptionRow = readonly [flags: string, description: string, fallback?: string];

/** Options as commander reads them: texts, lists of texts, and flags. */
export interface ParsedOptions {
  readonly [name: string]: string | readonly string[] | boolean | undefined;
}

/** Adds options to a command, by the groups of its help. Those in `repeated` may be given more than once. */
export function addOptions(
  command: Command,
  groups: Readonly<Record<string, readonly OptionRow[]>>,
  repeated: readonly string[],
): Command {
  const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
  for (const [group, rows] of Object.entries(groups)) {
    for (const [flags, description, fallback] of rows) {
      const option = new Option(flags, description).helpGroup(group);
      if (repeated.includes(option.attributeName())) option.argParser(collect);
      command.addOption(fallback === undefined ? option : option.default(fallback));
    }
  }
  return command;
}

/** A command line as a shell reads it. */
export function commandLineText(command: string, args: readonly string[]): string {
  const quoted = (argument: string) =>
    /^[\w./:=@,+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
  return [command, ...args.map(quoted)].join(" ");
}
