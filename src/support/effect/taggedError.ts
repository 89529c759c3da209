/** Errors that a console shows by their message first. Effect shows the fields of an error alone. */
import * as Schema from "effect/Schema"

const inspected = Symbol.for("nodejs.util.inspect.custom")

type Inspect = (value: unknown, options: unknown) => string

/** Shows the message, and the fields below it. */
function show(this: Error, _depth: number, options: unknown, inspect: Inspect): string {
  const { cause: _, ...fields } = { ...this }
  const details = Object.keys(fields).length === 0 ? "" : ` ${inspect(fields, options)}`
  return `${this.name}: ${this.message}${details}`
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
