/** The problem of a setting, in words. */
import type { ConfigError } from "effect/Config"
import * as SchemaIssue from "effect/SchemaIssue"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Settings are strings, so a setting that is no string is missing. */
const missing = "Expected string"

/** Names the setting and says what it should be. Values stay out of it: they may be secrets. */
export const configProblem = ({ cause }: ConfigError): string =>
  cause._tag === "SourceError"
    ? cause.message
    : format(cause.issue)
        .issues.map(({ message, path = [] }) => {
          const name = path.map((key) => String(typeof key === "object" ? key.key : key)).join("_")
          if (message === missing) return `${name} is not set`
          return `${name} is wrong: ${message.replace("a string representing a finite number", "a number")}`.replace(
            ": E",
            ": e"
          )
        })
        .join("; ")
