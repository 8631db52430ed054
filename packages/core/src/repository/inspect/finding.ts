/** A fact about a model of a repository that its author should know. */
export interface Finding {
  /** An `error` keeps the model, or a version of it, from being served. */
  readonly severity: "error" | "warning";
  /** The file or directory concerned. */
  readonly path: string;
  /** Line in the file, from 1; only for faults of the text itself. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

/** Findings of one model, each once. */
export class Findings {
  readonly all: Finding[] = [];

  /** Adds a finding. The same finding about several files of a model is reported for the first file. */
  add(finding: Finding): void {
    const isKnown = this.all.some(({ line, column, message }) => {
      return message === finding.message && line === finding.line && column === finding.column;
    });
    if (!isKnown) this.all.push(finding);
  }

  /** Adds a finding for each line of a text. */
  addLines(severity: Finding["severity"], path: string, text: string): void {
    for (const message of text.split("\n")) {
      if (message.trim() !== "") this.add({ severity, path, message });
    }
  }

  get hasErrors(): boolean {
    return this.all.some(({ severity }) => severity === "error");
  }
}
