/**
 * Schemas of other libraries (zod, ArkType, valibot …), by the interfaces that they share: Standard Schema, and
 * Standard JSON Schema for what the model reads. They are taken wherever an agent or a tool takes an Effect Schema.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { type StandardSchema, Tool } from "effect-deepagents"
 *
 * // `z.object({ city: z.string() })`, for one.
 * declare const parameters: StandardSchema.StandardSchema<{ readonly city: string }>
 *
 * const weather = Tool.make("weather", {
 *   description: "Tells the weather",
 *   parameters,
 *   execute: ({ city }) => Effect.succeed(`It snows in ${city}.`)
 * })
 * ```
 */

/** A problem that a schema has with a value, and the way to it. */
export interface Issue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** The end of a validation. */
export type Result<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<Issue> }

/**
 * A schema of whatever library, of version 1 of the standard, that can write itself down as JSON Schema. zod (from 4.2)
 * and ArkType have it; a schema of valibot is wrapped by `toStandardJsonSchema` of `@valibot/to-json-schema`.
 */
export interface StandardSchema<out Output = unknown> {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    readonly jsonSchema: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => { readonly [key: string]: unknown }
    }
  }
}
