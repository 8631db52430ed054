/** An invalid command line. */
export class OptionError extends Error {
  override readonly name = "OptionError";
  /** Place of the message relative to the usage; `alone` for an error that needs no usage. */
  readonly place: "before usage" | "after usage" | "alone";

  constructor(message: string, place: OptionError["place"] = "after usage") {
    super(message);
    this.place = place;
  }
}
