/** Makes values, and loads modules, when they are first asked for. */
import * as Effect from "effect/Effect"

/** Makes a value when it is first asked for, and gives the same one from then on. */
export const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

/** Loads a module when it is first asked for, and gives it at once from then on. */
export const onDemand = <Module>(load: () => Promise<Module>): Effect.Effect<Module> => {
  let loaded: { readonly module: Module } | undefined
  return Effect.suspend(() =>
    loaded === undefined
      ? Effect.map(Effect.promise(load), (module) => (loaded = { module }).module)
      : Effect.succeed(loaded.module)
  )
}
