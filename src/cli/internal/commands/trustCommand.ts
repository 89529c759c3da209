/** `deepagents trust`: lists the items of a project, trusts them, and withdraws that. */
import * as Effect from "effect/Effect"
import { suggestion } from "../../../support/text/near.ts"
import { findItems, type Item } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { answer, type TrustedItem, statesOf } from "../config/trust.ts"
import { fail } from "../failure.ts"
import { print, printJson, table, tell } from "../output.ts"
import type { Context } from "../work/app.ts"
import { rowOf } from "../work/trusting.ts"

/** Reads the items of a folder with their states. */
export const knownIn = Effect.fnUntraced(function* (places: Places) {
  return yield* statesOf(places, yield* findItems(places.project))
})

export const list = Effect.fnUntraced(function* ({ places }: Context, asJson: boolean) {
  const states = yield* knownIn(places)
  if (asJson) {
    return yield* printJson(
      states.map(({ item: { file, gist, kind, name, problem }, state }) => ({ kind, name, file, state, gist, problem }))
    )
  }
  if (states.length === 0)
    return yield* tell("The files of this folder have nothing that an agent would follow or run.")
  return yield* print(...table(states.map(rowOf)))
})

/** The items that are named: by name, kind or file. No name means all. */
export const chosenOf = (known: ReadonlyArray<TrustedItem>, names: ReadonlyArray<string>) => {
  const isNamed = ({ item }: TrustedItem, name: string): boolean => [item.name, item.file, item.kind].includes(name)
  const wrong = names.find((name) => !known.some((one) => isNamed(one, name)))
  if (wrong !== undefined) {
    const all = known.map(({ item }) => item.name)
    return fail("usage", `The folder has no item ${JSON.stringify(wrong)}. ${suggestion(wrong, all)}`)
  }
  return Effect.succeed(
    known.filter((one) => names.length === 0 || names.some((name) => isNamed(one, name))).map(({ item }) => item)
  )
}

const namesOf = (items: ReadonlyArray<Item>): string => items.map(({ kind, name }) => `${kind} ${name}`).join(", ")

/** Trusts items as they are now, or withdraws the trust. */
export const decide = Effect.fnUntraced(function* (
  { places }: Context,
  names: ReadonlyArray<string>,
  isTrusted: boolean
) {
  const items = yield* chosenOf(yield* knownIn(places), names)
  const problem = items.find((item) => item.problem !== undefined)
  if (isTrusted && problem !== undefined) {
    return yield* fail("usage", `${problem.kind} ${problem.name} can't be trusted: ${problem.problem ?? ""}`)
  }
  yield* answer(places, items, isTrusted ? true : undefined)
  const what = items.length === 0 ? "nothing" : namesOf(items)
  return yield* tell(isTrusted ? `Trusted as they are now: ${what}` : `No longer trusted: ${what}`)
})
