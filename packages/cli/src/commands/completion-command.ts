import { Argument, Command, type Option as CommanderOption } from "commander";
import type { CommandContext } from "../command-context.js";
import type { Option } from "../options/option.js";
import { optionGroups } from "../options/options.js";

const SCRIPTS: Readonly<Record<string, (root: CompletedCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function completionCommand({ terminal }: CommandContext): Command {
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
  /** With its dashes. */
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
}: CommanderOption): CompletedOption[] {
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
        description: noEffect === undefined ? firstSentence(description) : `no effect: ${noEffect}`,
        repeats: Array.isArray(initial),
        ...(argument !== undefined && {
          value:
            completes ?? (argument === "boolean" ? ["true", "false"] : argument === "file" ? "file" : []),
        }),
      };
    }),
  );
}

function firstSentence(description: string): string {
  return description.replace(/\.(?: .*)?$/s, "");
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

/** Makes the completion of zsh. It can be sourced, or be a file `_tritonjs` in a directory of `fpath`. */
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
  const described = commands.map((one) => zshQuoted(`${colonless(one.name)}:${one.description}`)).join(" ");
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

function colonless(name: string): string {
  return name.replaceAll(":", "\\:");
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
