/** Failures of OpenAPI documents. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

/** A document can't be read, can't be made into tools, or lacks an operation that the options name. */
export class OpenApiError extends TaggedError<OpenApiError>()("OpenApiError", {
  document: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The OpenAPI document ${this.document}: ${this.problem}`
  }
}
