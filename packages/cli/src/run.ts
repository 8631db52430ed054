import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findInstalled, VERSION } from "@tritonjs/core/internal";
import {
  listTools,
  TOOLS as PERF_TOOLS,
  runCommand,
  type Terminal,
  type Tool,
} from "@tritonjs/perf/internal";
import { Argument, Command, Option as HelpOption } from "commander";
import type { CommandAdditions, CommandContext } from "./command-context.js";
import { checkCommand } from "./commands/check-command.js";
import { configCommand } from "./commands/config-command.js";
import { doctorCommand } from "./commands/doctor-command.js";
import { rolloutCommand } from "./commands/rollout-command.js";
import { sampleModel } from "./commands/sample-model.js";
import { stubCommand } from "./commands/stub-command.js";
import { typesCommand } from "./commands/types-command.js";
import { type Option, OptionError } from "./options/option.js";
import { optionGroups } from "./options/options.js";

/**
 * Runs the command `tritonjs`. With your own backends, it makes a command of your own.
 *
 * @param args arguments after the name of the command
 * @returns the exit code
 *
 * @example
 * ```ts
 * process.exitCode = await run(process.argv.slice(2), processTerminal, { backends: { shout } });
 * ```
 */
export async function run(
  args: readonly string[],
  terminal: Terminal,
  additions: CommandAdditions = {},
): Promise<number> {
  const [command, ...rest] = args;
  // `serve` reads its options by the rules of getopt, like tritonserver. Commander only writes their help.
  const asksForHelp = rest.includes("--help") || (rest.length === 1 && rest[0] === "-h");
  if (command === "serve" && !asksForHelp) return runServe(rest, terminal, additions);
  if (command !== undefined && Object.hasOwn(TOOLS, command)) {
    const tool = await TOOLS[command]!.load();
    return tool(rest, terminal);
  }
  let code = 0;
  const finish = (result: number) => {
    code = result;
  };
  const program = commandLine({ terminal, additions, finish });
  return runCommand(program, args, { terminal, faultCode: 1 }, () => code);
}

async function runServe(
  args: readonly string[],
  terminal: Terminal,
  additions: CommandAdditions,
): Promise<number> {
  try {
    const { serve } = await import("./serve/serve.js");
    return await serve(args, terminal, additions);
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    const { place, message } = error;
    if (place === "after usage") terminal.writeError(serveHelp());
    terminal.writeError(`${message}\n`);
    if (place === "before usage") terminal.writeError(serveHelp());
    return 1;
  }
}

export function commandLine(context: CommandContext): Command {
  const program = new Command("tritonjs")
    .description("Serves models with Triton's scheduling over its protocol, from Node.js.")
    .version(VERSION)
    .showHelpAfterError(
      "Run 'tritonjs --help' for the commands. Options of tritonserver go with 'tritonjs serve'.",
    )
    .addCommand(serveCommand())
    .addCommand(configCommand(context))
    .addCommand(typesCommand(context))
    .addCommand(checkCommand(context))
    .addCommand(stubCommand(context))
    .addCommand(doctorCommand(context))
    .addCommand(rolloutCommand(context))
    .addCommand(initCommand(context));
  return listTools(program, TOOLS).addCommand(completionCommand(context));
}

function serveCommand(): Command {
  const command = new Command("serve").description("serve a model repository");
  for (const [group, options] of Object.entries(optionGroups)) {
    for (const [name, option] of Object.entries(options)) {
      const { argument, description, noEffect } = option;
      const value = argument === undefined ? "" : ` <${argument.replaceAll(/[<>]/g, "")}>`;
      const effect = noEffect === undefined ? "" : ` Has no effect: ${noEffect}.`;
      command.addOption(new HelpOption(`--${name}${value}`, description + effect).helpGroup(`${group}:`));
    }
  }
  return command;
}

function serveHelp(): string {
  return new Command("tritonjs").addCommand(serveCommand()).commands[0]!.helpInformation();
}

/** Commands that load their own part: those of `@tritonjs/perf`, and `repo`. */
const TOOLS: Readonly<Record<string, Tool>> = {
  ...PERF_TOOLS,
  repo: {
    description: "add a trained model to a model repository; `tritonjs repo add --help` has the options",
    usage: "add <directory or file> [options]",
    load: async () => (await import("./repo-add/repo-command.js")).repoCommand,
  },
};

function initCommand({ terminal, finish }: CommandContext): Command {
  const template = new HelpOption(
    "--template <name>",
    "a model repository, an application that calls its models in process, or a service on HTTP and gRPC",
  )
    .choices([...TEMPLATES])
    .default("repository");
  return new Command("init")
    .description("write a sample to begin with; files that exist are left alone")
    .argument("[folder]", "where to write it; `models` for a repository, else the name of the template")
    .addOption(template)
    .action(async (given: string | undefined, options: { readonly template: TemplateName }) => {
      const folder = given ?? (options.template === "repository" ? "models" : options.template);
      const { written, kept } = await writeTemplate(options.template, folder);
      for (const path of written) terminal.write(`wrote ${path}\n`);
      for (const path of kept) terminal.writeError(`${path} exists: kept as it is\n`);
      if (written.length > 0) terminal.write(`\n${nextStep(options.template, folder)}\n`);
      finish(kept.length > 0 ? 1 : 0);
    });
}

function nextStep(template: TemplateName, folder: string): string {
  if (template === "repository") {
    const isReady = findInstalled("onnxruntime-node", import.meta.url) !== undefined;
    const needs = "Its model needs ONNX Runtime beside this command: npm install onnxruntime-node\n";
    return `${isReady ? "" : needs}Serve it: tritonjs serve --model-repository ${folder}`;
  }
  return `Start it: cd ${folder} && npm install && npm start`;
}

const TEMPLATES = ["repository", "app", "service"] as const;

type TemplateName = (typeof TEMPLATES)[number];

const FOLDER = fileURLToPath(new URL("../templates/", import.meta.url));

/**
 * Writes a model repository with a sample, or a program with such a repository in its folder `models`. Existing files
 * are not overwritten.
 */
async function writeTemplate(template: TemplateName, folder: string) {
  const files = template === "repository" ? sampleRepository(folder) : await programFiles(template);
  const written: string[] = [];
  const kept: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    const isNew = await writeNew(path, content);
    (isNew ? written : kept).push(path);
  }
  return { written, kept };
}

async function programFiles(template: TemplateName): Promise<Record<string, string | Uint8Array>> {
  const files: Record<string, string | Uint8Array> = {};
  for (const path of await readdir(join(FOLDER, template), { recursive: true })) {
    if ((await stat(join(FOLDER, template, path))).isDirectory()) continue;
    const text = await readFile(join(FOLDER, template, path), "utf8");
    // npm leaves a file that is called .gitignore out of a package.
    const name = path === "gitignore" ? ".gitignore" : path;
    files[name] = path === "package.json" ? text.replaceAll("VERSION", VERSION) : text;
  }
  for (const [path, content] of Object.entries(sampleRepository("models")))
    files[join("models", path)] = content;
  return files;
}

async function writeNew(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

const config = `# The fields are those of Triton: docs/model-configuration.md of tritonjs has them all.
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "features" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
dynamic_batching { max_queue_delay_microseconds: 500 }
`;

const readme = (folder: string) => `# A model repository

\`tritonjs serve --model-repository ${folder}\` serves it, on the ports 8000 (HTTP), 8001 (gRPC) and 8002 (metrics).
The model is an ONNX file: it needs \`npm install onnxruntime-node\` where \`@tritonjs/cli\` is installed.
Ask it: \`curl localhost:8000/v2/models/classifier/infer -d '{"inputs":[{"name":"features","datatype":"FP32","shape":[1,4],"data":[5,3,1,0]}]}'\`
Each model is a folder with its configuration, \`config.pbtxt\`, and a folder for each version with the model's file.
Look for mistakes with \`tritonjs config check ${folder}\`; write TypeScript types with \`tritonjs types ${folder} --out models.d.ts\`.
`;

function sampleRepository(folder: string): Record<string, string | Uint8Array> {
  return {
    "README.md": readme(folder),
    "classifier/config.pbtxt": config,
    "classifier/labels.txt": "small\nmedium\nlarge\n",
    "classifier/1/model.onnx": sampleModel(),
  };
}

const SCRIPTS: Readonly<Record<string, (root: CompletedCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

function completionCommand({ terminal }: CommandContext): Command {
  const command = new Command("completion")
    .description("print a script that completes commands and options in your shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText(
      "after",
      "\nFor this shell: source <(tritonjs completion bash), source <(tritonjs completion zsh), or\n" +
        "tritonjs completion fish | source. For all shells, write the script where your shell looks for it.",
    )
    .action((shell: string) => terminal.write(SCRIPTS[shell]!(completionTree(command.parent!))));
  return command;
}

/** The values that a shell proposes: files, directories, words, or none. */
type Proposal = "file" | "directory" | readonly string[];

interface CompletedOption {
  readonly name: string;
  readonly description: string;
  /** Kinds of its value; undefined for an option without a value. */
  readonly value?: Proposal | undefined;
  /** Whether it may be given several times. */
  readonly repeats: boolean;
}

interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  readonly argument?: Proposal | undefined;
  readonly commands: readonly CompletedCommand[];
}

/** The commands and options to complete. Those of `serve` come from the table of options. */
function completionTree(program: Command): CompletedCommand {
  const commands = program.commands.map(completionTree);
  const [argument] = program.registeredArguments;
  const isServe = program.name() === "serve";
  return {
    name: program.name(),
    description: program.description(),
    options: [...(isServe ? serveOptions() : program.options.flatMap(optionOf)), HELP],
    ...(argument !== undefined && { argument: argument.argChoices ?? "file" }),
    commands,
  };
}

const HELP: CompletedOption = { name: "--help", description: "display help for command", repeats: false };

function optionOf({
  long,
  description,
  required,
  optional,
  argChoices,
  flags,
}: HelpOption): CompletedOption[] {
  if (long === undefined || long === null) return [];
  const takesValue = required || optional;
  const proposal = argChoices ?? (/<(file|folder|directory|path)>/.test(flags) ? "file" : []);
  return [{ name: long, description, repeats: false, ...(takesValue && { value: proposal }) }];
}

function serveOptions(): CompletedOption[] {
  return Object.values(optionGroups).flatMap((group) =>
    Object.entries(group as Record<string, Option<unknown>>).map(([name, option]) => {
      const { argument, description, initial, completes, noEffect } = option;
      return {
        name: `--${name}`,
        description:
          noEffect === undefined ? description.replace(/\.(?: .*)?$/s, "") : `no effect: ${noEffect}`,
        repeats: Array.isArray(initial),
        ...(argument !== undefined && {
          value:
            completes ?? (argument === "boolean" ? ["true", "false"] : argument === "file" ? "file" : []),
        }),
      };
    }),
  );
}

/**
 * Makes the completion of bash. It works with the bash 3.2 of macOS, and without the package bash-completion. The line
 * is split at spaces here, because readline also splits options at `=`.
 */
function bashScript(root: CompletedCommand): string {
  const cases = flatten(root, root.name);
  const subcommands = cases.flatMap(({ path, command }) =>
    command.commands.map(({ name }) => `${path} ${name}`),
  );
  const values = cases.flatMap(({ path, command }) =>
    command.options.flatMap(({ name, value }) =>
      value === undefined ? [] : [`      "${path} ${name}") ${assignment(value)} ;;`],
    ),
  );
  const words = cases.map(({ path, command }) => {
    const names = [...command.commands, ...command.options].map(({ name }) => name).join(" ");
    const further = command.argument === undefined ? "" : ` ${assignment(command.argument)}`;
    return `    "${path}") names="${names}"${further} ;;`;
  });
  return `# Completion of ${root.name} for bash.
# For this shell: source <(${root.name} completion bash)
_${root.name}() {
  local line="\${COMP_LINE:0:COMP_POINT}" cur="" option="" path="${root.name}" names="" kind="none" proposed="" prefix="" word
  local -a typed
  read -ra typed <<< "$line"
  case "$line" in
    *[[:space:]]) ;;
    *) cur="\${typed[\${#typed[@]} - 1]}"; typed=("\${typed[@]:0:\${#typed[@]} - 1}") ;;
  esac
  for word in "\${typed[@]:1}"; do
    case "$path $word" in
      ${subcommands.map((name) => `"${name}"`).join(" | ")}) path="$path $word" ;;
    esac
    option="$word"
  done
  COMPREPLY=()
  if [[ "$cur" == --*=* ]]; then
    option="\${cur%%=*}"
    [[ "$COMP_WORDBREAKS" == *=* ]] || prefix="$option="
    cur="\${cur#*=}"
    names=""
  else
    case "$path" in
  ${words.join("\n  ")}
    esac
  fi
  if [[ "$option" == --* && "$option" != *=* ]]; then
    case "$path $option" in
${values.join("\n")}
      *) [[ -n "$names" ]] || return ;;
    esac
    [[ "$kind" == none ]] || names=""
  fi
  local IFS=$'\\n'
  case "$kind" in
    file) COMPREPLY=($(compgen -P "$prefix" -f -- "$cur")) ;;
    directory) COMPREPLY=($(compgen -P "$prefix" -d -- "$cur")) ;;
  esac
  if [[ "\${#COMPREPLY[@]}" -gt 0 ]] && type compopt > /dev/null 2>&1; then compopt -o filenames 2> /dev/null; fi
  IFS=$' \\n'
  COMPREPLY+=($(compgen -P "$prefix" -W "$names $proposed" -- "$cur"))
}
complete -F _${root.name} ${root.name}
`;
}

function assignment(proposal: Proposal): string {
  if (proposal === "file" || proposal === "directory") return `kind=${proposal}`;
  return proposal.length === 0 ? "kind=free" : `kind=words proposed="${proposal.join(" ")}"`;
}

function flatten(command: CompletedCommand, path: string): { path: string; command: CompletedCommand }[] {
  return [{ path, command }, ...command.commands.flatMap((one) => flatten(one, `${path} ${one.name}`))];
}

function zshScript(root: CompletedCommand): string {
  const main = `_${root.name}`;
  return `#compdef ${root.name}
# Completion of ${root.name} for zsh.
# For this shell, after compinit: source <(${root.name} completion zsh)
${functionsOf(root, main)}
if [ "\${funcstack[1]}" = "${main}" ]; then
  ${main} "$@"
else
  compdef ${main} ${root.name}
fi
`;
}

function functionsOf(command: CompletedCommand, name: string): string {
  const { commands, options, argument } = command;
  const specs = options.map(optionSpec);
  if (commands.length === 0) {
    const further = argument === undefined ? [] : [zshQuoted(`*:argument:${action(argument)}`)];
    return `${name}() {\n  _arguments ${[...specs, ...further].join(" \\\n    ")}\n}\n`;
  }
  const described = commands
    .map((one) => zshQuoted(`${one.name.replaceAll(":", "\\:")}:${one.description}`))
    .join(" ");
  const calls = commands.map((one) => `        ${one.name}) ${name}_${one.name} ;;`).join("\n");
  return `${name}() {
  local curcontext="$curcontext" state
  local -a line commands
  commands=(${described})
  _arguments -C ${specs.join(" \\\n    ")} \\
    '1: :->command' '*:: :->rest'
  case "$state" in
    command) _describe command commands ;;
    rest)
      case "\${line[1]}" in
${calls}
      esac ;;
  esac
}
${commands.map((one) => functionsOf(one, `${name}_${one.name}`)).join("")}`;
}

function optionSpec({ name, description, value, repeats }: CompletedOption): string {
  const text = description.replace(/[[\]\\:]/g, (sign) => `\\${sign}`);
  const start = `${repeats ? "*" : ""}${name}${value === undefined ? "" : "="}[${text}]`;
  return zshQuoted(value === undefined ? start : `${start}:value:${action(value)}`);
}

function action(proposal: Proposal): string {
  if (proposal === "file") return "_files";
  if (proposal === "directory") return "_files -/";
  return proposal.length === 0 ? " " : `(${proposal.join(" ")})`;
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishScript(root: CompletedCommand): string {
  return `# Completion of ${root.name} for fish.
# For this shell: ${root.name} completion fish | source
complete -c ${root.name} -f
${linesOf(root, root.name, []).join("\n")}
`;
}

/** @param path names of the commands before, without the program */
function linesOf(command: CompletedCommand, program: string, path: readonly string[]): string[] {
  const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
  const names = command.commands.map(({ name }) => name).join(" ");
  const none = names === "" ? [] : [`not __fish_seen_subcommand_from ${names}`];
  const here = conditionOf([...seen, ...none]);
  const start = `complete -c ${program}${here}`;
  return [
    ...command.commands.map(({ name, description }) => `${start} -a ${name} -d ${fishQuoted(description)}`),
    ...command.options.map((option) => `${start} ${optionText(option)}`),
    ...(command.argument === undefined ? [] : [`${start} ${valueText(command.argument)}`]),
    ...command.commands.flatMap((one) => linesOf(one, program, [...path, one.name])),
  ];
}

function conditionOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : ` -n ${fishQuoted(conditions.join("; and "))}`;
}

function optionText({ name, description, value }: CompletedOption): string {
  const long = `-l ${name.replace(/^--/, "")} -d ${fishQuoted(description)}`;
  if (value === undefined) return long;
  return value === "file" ? `${long} -r -F` : `${long} -x ${valueText(value)}`.trimEnd();
}

function valueText(proposal: Proposal): string {
  if (proposal === "file") return "-F";
  if (proposal === "directory") return "-a '(__fish_complete_directories)'";
  return proposal.length === 0 ? "" : `-a ${fishQuoted(proposal.join(" "))}`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
