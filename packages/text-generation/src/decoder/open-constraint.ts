import type { ResponseFormat, SamplingParameters } from "../sampling/sampling-parameters.js";
import type { StructuredFields } from "../structured/response-format.js";
import type { StructuredOutput } from "../structured/structured-output.js";
import type { TokenConstraint } from "../structured/token-constraint.js";

/**
 * Makes the constraint of a request for structured output; undefined if it asks for none.
 *
 * @param structured opens the grammars of the model
 * @throws TritonError INVALID_ARG for a format that cannot be compiled or a vocabulary without grammars; UNAVAILABLE
 * without the package for grammars
 */
export async function openConstraint(
  { responseFormat }: SamplingParameters,
  structured: () => StructuredOutput,
): Promise<TokenConstraint | undefined> {
  if (responseFormat === undefined || responseFormat.type === "text") return undefined;
  return structured().constrain(fieldsOf(responseFormat));
}

/** The format as fields of a request. */
function fieldsOf(format: ResponseFormat): StructuredFields {
  switch (format.type) {
    case "json_schema": {
      const { schema, strict } = format;
      const described = { schema, ...(strict === undefined ? {} : { strict }) };
      return { response_format: { type: "json_schema", json_schema: described } };
    }
    case "regex":
      return { guided_regex: format.pattern };
    case "choice":
      return { guided_choice: format.texts };
    case "grammar":
      return { guided_grammar: format.grammar };
    default:
      return { response_format: format };
  }
}
