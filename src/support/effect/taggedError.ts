/** Errors that a console shows by their message first. Effect shows the fields of an error alone. */
import * as Schema from "effect/Schema"

const inspected = Symbol.for("nodejs.util.inspect.custom")

type Inspect = (value: unknown, options: object) => string

/** The most causes of causes that are shown. A cause may lead back to itself. */
const maxCauses = 4

/** Shows the message, the fields behind it, and the cause below. */
function show(this: Error, depth: number | null, options: object, inspect: Inspect): string {
  const { cause: _, ...fields } = { ...this }
  const details = Object.keys(fields).length === 0 ? "" : ` ${inspect(fields, options)}`
  const limit = Math.min(depth ?? maxCauses, maxCauses)
  const cause =
    this.cause === undefined || limit < 0
      ? ""
      : `\n[cause]: ${inspect(this.cause, { ...options, depth: limit - 1 })}`.replaceAll("\n", "\n  ")
  return `${this.name}: ${this.message}${details}${cause}`
}

type Make = (identifier?: string) => (...parts: ReadonlyArray<unknown>) => { readonly prototype: object }

// The types stay those of Effect. Only the prototype gets a method.
const makeTagged = Schema.TaggedError as unknown as Make

const makeShown: Make =
  (identifier) =>
  (...parts) => {
    const errorClass = makeTagged(identifier)(...parts)
    Object.defineProperty(errorClass.prototype, inspected, { value: show, configurable: true })
    return errorClass
  }

/** As `Schema.TaggedError`: makes the base class of a tagged error. */
export const TaggedError = makeShown as unknown as typeof Schema.TaggedError
