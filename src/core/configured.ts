/**
 * Options of a layer, of which any may be read from `Config` instead of being written down. (`Config.unwrap` of Effect
 * wants all of them to be.)
 */
import * as Config from "effect/Config"

/** Each option is a value or a `Config` of it. */
export type ConfigOptions<Options> = { readonly [Key in keyof Options]: Options[Key] | Config.Config<Options[Key]> }

/**
 * Reads the options that are a `Config`. An option that is `undefined` is not given: its default is read, if it has
 * one.
 */
export const fromConfigured = <Options extends object>(
  options: ConfigOptions<Options> | undefined,
  defaults: Partial<ConfigOptions<Options>> = {}
): Config.Config<Options> => {
  const definedOptions = Object.entries(options ?? {}).filter(([, value]) => value !== undefined)
  const entries = Object.entries({ ...defaults, ...Object.fromEntries(definedOptions) }).map(
    ([key, value]): readonly [string, Config.Config<unknown>] => [
      key,
      Config.isConfig(value) ? value : Config.succeed(value)
    ]
  )
  // Every key is an option, and its config returns the type of that option.
  return Config.all(Object.fromEntries(entries)) as Config.Config<unknown> as Config.Config<Options>
}
