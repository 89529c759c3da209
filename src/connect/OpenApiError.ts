/** Failures of OpenAPI documents, before a tool is made of them. */
import * as Schema from "effect/Schema"

/** A document can't be had, is none that tools can be made of, or the options name what it does not have. */
export class OpenApiError extends Schema.TaggedError<OpenApiError>()("OpenApiError", {
  document: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The OpenAPI document ${this.document}: ${this.problem}`
  }
}
