import type { CompletedCommand, CompletedOption, Proposal } from "./completion-tree.js";

/** Makes the completion of fish. */
export function fishScript(root: CompletedCommand): string {
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
    ...command.commands.map(({ name, description }) => `${start} -a ${name} -d ${quoted(description)}`),
    ...command.options.map((option) => `${start} ${optionText(option)}`),
    ...(command.argument === undefined ? [] : [`${start} ${valueText(command.argument)}`]),
    ...command.commands.flatMap((one) => linesOf(one, program, [...path, one.name])),
  ];
}

function conditionOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : ` -n ${quoted(conditions.join("; and "))}`;
}

function optionText({ name, description, value }: CompletedOption): string {
  const long = `-l ${name.replace(/^--/, "")} -d ${quoted(description)}`;
  if (value === undefined) return long;
  return value === "file" ? `${long} -r -F` : `${long} -x ${valueText(value)}`.trimEnd();
}

function valueText(proposal: Proposal): string {
  if (proposal === "file") return "-F";
  if (proposal === "directory") return "-a '(__fish_complete_directories)'";
  return proposal.length === 0 ? "" : `-a ${quoted(proposal.join(" "))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
