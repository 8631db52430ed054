import { Log, type LogChanges, type LogSettings, type LogSubject } from "@tritonjs/core/frontend";
import type { Control } from "../messages/control.js";

/** The log of the engine, as a thread writes to it. */
export class MirroredLog extends Log {
  readonly #control: Control;
  #mirrored: LogSettings;

  constructor(control: Control, settings: LogSettings) {
    super(
      {
        takesSubjects: true,
        error: (message: string, about?: LogSubject) => control.tell("log", "error", message, about),
        warn: (message: string, about?: LogSubject) => control.tell("log", "warning", message, about),
        info: (message: string, about?: LogSubject) => control.tell("log", "info", message, about),
        debug: (message: string, about?: LogSubject) => control.tell("logVerbose", message, about),
      } as ConstructorParameters<typeof Log>[0],
      settings,
    );
    this.#control = control;
    this.#mirrored = settings;
  }

  override get settings(): LogSettings {
    this.#control.catchUp();
    return this.#mirrored;
  }

  override update(changes: LogChanges): void {
    this.#control.callSync("updateLog", changes);
  }

  /** Takes the settings of the engine. */
  take(settings: LogSettings): void {
    this.#mirrored = settings;
    super.update(settings);
  }
}
