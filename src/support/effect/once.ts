/** Makes values, and loads modules, at their first use. */
import * as Effect from "effect/Effect"

/** Makes a value at the first call, and returns the same one from then on. */
export const once = <A>(make: () => A): (() => A) => {
  let cache: { readonly value: A } | undefined
  return () => (cache ??= { value: make() }).value
}

/** Loads a module at its first use; later uses are synchronous. */
export const onDemand = <Module>(load: () => Promise<Module>): Effect.Effect<Module> => {
  let loaded: { readonly module: Module } | undefined
  return Effect.suspend(() =>
    loaded === undefined
      ? Effect.map(Effect.promise(load), (module) => (loaded = { module }).module)
      : Effect.succeed(loaded.module)
  )
}
