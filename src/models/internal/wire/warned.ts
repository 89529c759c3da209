/** Things that a model's layer has to say of a request, each once: they become `Warning` events. */
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../core/ChatModel.ts"

/** Gives the warning for those of some names that were not warned of yet, if there are any. */
export const makeWarner = (code: string, say: (names: string) => string) => {
  const warnedNames = new Set<string>()
  return (names: ReadonlyArray<string>): TurnPart | undefined => {
    const fresh = names.filter((name) => !warnedNames.has(name))
    for (const name of fresh) warnedNames.add(name)
    return fresh.length === 0 ? undefined : { _tag: "Warning", code, message: say(fresh.join(", ")) }
  }
}

/** Parts of an answer's schema that a provider does not enforce. */
export const makeSchemaWarner = (origin: { readonly provider: string; readonly model: string }) =>
  makeWarner(
    "schema",
    (names) =>
      `${origin.provider}/${origin.model} is not held to all of the answer's schema; what it breaks is found when the answer is decoded: ${names}`
  )

/** Thinking that was asked for, of a model that does not reason or can't be told how much. */
export const makeThinkingWarner = ({ model, provider }: { readonly provider: string; readonly model: string }) => {
  const warn = makeWarner(
    "thinking",
    (name) => `${name} does not reason, or can't be told how much: it was asked without \`thinking\``
  )
  return (isUnheard: boolean): TurnPart | undefined => warn(isUnheard ? [`${provider}/${model}`] : [])
}

/** A turn that begins with a warning. */
export const warned = <E, R>(
  warning: TurnPart | undefined,
  turn: Stream.Stream<TurnPart, E, R>
): Stream.Stream<TurnPart, E, R> => (warning === undefined ? turn : Stream.concat(Stream.succeed(warning), turn))
