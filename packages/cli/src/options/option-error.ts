/** A command line that cannot be run. */
export class OptionError extends Error {
  override readonly name = "OptionError";
  /** Where the text stands beside the usage; `alone` for an error that the usage does not help with. */
  readonly place: "before usage" | "after usage" | "alone";

  constructor(message: string, place: OptionError["place"] = "after usage") {
    super(message);
    this.place = place;
  }
}
