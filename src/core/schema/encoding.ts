/** Decodes versioned JSON, with an error that names the field. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import { TaggedError } from "../../support/effect/taggedError.ts"
import { version, versionProblem } from "../../support/store/version.ts"
import { at, brief, problems } from "../../support/text/issues.ts"
import { isObject } from "../Json.ts"

const later = "; if a later effect-deepagents wrote it, update this one"

/**
 * A stored or received value that this version can't read. `path` names the field, `found` its value (cut to a line),
 * `expected` the correct one. The path `v` is the version: later versions are rejected, since part of the value would
 * be lost.
 */
export class InvalidEncoding extends TaggedError<InvalidEncoding>()("InvalidEncoding", {
  what: Schema.Literals(["message", "event", "state", "checkpoint"]),
  path: Schema.String,
  found: Schema.String,
  expected: Schema.String
}) {
  override get message(): string {
    return `Cannot decode this ${this.what}: at ${this.path === "" ? "the top" : this.path} expected ${this.expected}, found ${this.found}${this.path === "v" ? later : ""}`
  }
}

type What = InvalidEncoding["what"]

const roles = ["system", "human", "ai", "tool"]

const blockTypes = ["text", "reasoning", "image", "file"]

/** A union's own error lists every member; a reader wants to know which tag it was that nobody knows. */
const unknownTag = (
  value: unknown,
  tags: ReadonlyArray<string>
): { readonly path: string; readonly found: unknown; readonly expected: string } | undefined => {
  if (!isObject(value)) return undefined
  const checkTag = (key: string, allowedTags: ReadonlyArray<string>, path: string, tag: unknown) =>
    typeof tag === "string" && !allowedTags.includes(tag)
      ? { path: path === "" ? key : `${path}.${key}`, found: tag, expected: `one of ${allowedTags.join(", ")}` }
      : undefined
  const message = isObject(value["message"]) ? value["message"] : value
  const prefix = message === value ? "" : "message"
  const role = checkTag("role", roles, prefix, message["role"])
  if (role !== undefined) return role
  const tag = tags.length > 0 ? checkTag("_tag", tags, "", value["_tag"]) : undefined
  if (tag !== undefined) return tag
  const content = message["content"]
  if (!Array.isArray(content)) return undefined
  for (const [index, block] of content.entries()) {
    const path = `${prefix === "" ? "" : `${prefix}.`}content[${index}]`
    const blockType = isObject(block) ? checkTag("type", blockTypes, path, block["type"]) : undefined
    if (blockType !== undefined) return blockType
  }
  return undefined
}

/** Makes a decoder of a versioned encoding. `tags` are the union's tags, named in the error of an unknown one. */
export const decodeVersioned = <T>(
  what: What,
  schema: Schema.ConstraintDecoder<T>,
  tags: ReadonlyArray<string> = []
) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (input: unknown): Result.Result<T, InvalidEncoding> => {
    if (!isObject(input)) {
      return Result.fail(new InvalidEncoding({ what, path: "", found: brief(input), expected: "an object" }))
    }
    if (versionProblem(input["v"]) !== undefined) {
      const expected = version === 1 ? "version 1" : `a version from 1 to ${version}`
      return Result.fail(new InvalidEncoding({ what, path: "v", found: brief(input["v"]), expected }))
    }
    return Result.mapError(decode(input), (error) => {
      const tag = unknownTag(input, tags)
      if (tag !== undefined) {
        return new InvalidEncoding({ what, path: tag.path, found: brief(tag.found), expected: tag.expected })
      }
      return invalid(what, error.issue, input)
    })
  }
}

const invalid = (what: What, issue: SchemaIssue.Issue, input: unknown): InvalidEncoding => {
  const first = problems(issue)[0]
  return new InvalidEncoding({
    what,
    path: first?.path ?? "",
    found: brief(at(input, first?.keys ?? [])),
    expected: first?.expected ?? "a valid value"
  })
}
