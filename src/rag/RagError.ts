/** Failures of an index of documents. */
import * as Schema from "effect/Schema"
import { TaggedError } from "../support/effect/taggedError.ts"

const Reason = Schema.Union([
  Schema.TaggedStruct("InvalidName", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidValue", { problem: Schema.String }),
  Schema.TaggedStruct("OtherModel", { stored: Schema.String, wanted: Schema.String }),
  Schema.TaggedStruct("Corrupt", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "InvalidName":
      return `this is no name: ${reason.problem}`
    case "InvalidValue":
      return `this can't be indexed or searched: ${reason.problem}`
    case "OtherModel":
      return `its vectors are of ${reason.stored}, and not of ${reason.wanted}; use that model, or drop the namespace and index its documents again`
    case "Corrupt":
      return `the stored data can't be read: ${reason.problem}`
    case "Unavailable":
      return `the index is not available: ${reason.problem}`
  }
}

/**
 * An operation of an index failed. It changed nothing. Reasons:
 *
 * - `InvalidName`: a namespace that can't be stored
 * - `InvalidValue`: a document, a vector or a filter that can't be stored or searched
 * - `OtherModel`: the vectors of the namespace are of another model, or of another length; index the documents again
 * - `Corrupt`: the stored data can't be read
 * - `Unavailable`: the database is away, or the disk is full; try again later
 */
export class RagError extends TaggedError<RagError>()("RagError", {
  operation: Schema.String,
  namespace: Schema.String,
  reason: Reason,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `${this.operation} in ${JSON.stringify(this.namespace)}: ${explain(this.reason)}`
  }
}
