/** Asks a person about the items of a project that are new or changed. */
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import { escapeUnseen } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import { findItems } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { answer, type TrustedItem, projectOf, statesOf } from "../config/trust.ts"
import { canAsk, table, tell } from "../output.ts"
import { askPerson } from "../question.ts"

/** The most lines of an item that are shown at a question. */
const shownLines = 60

/** The lines of an item: what changed, or all of it. */
export const linesOf = ({ before, item }: TrustedItem, most = shownLines): ReadonlyArray<string> => {
  const text =
    before === undefined ? item.text : TextDiff.unified(TextDiff.lines(before, item.text, { maxEdits: 1_000 }))
  const lines = escapeUnseen(text.trimEnd())
    .split("\n")
    .map((line) => cut(line, 500))
  const hiddenCount = lines.length - most
  return hiddenCount <= 0 ? lines : [...lines.slice(0, most), `… ${hiddenCount} more lines: read ${escaped(item.file)}`]
}

/** A row of the list of items. */
export const rowOf = ({ item, state }: TrustedItem): ReadonlyArray<string> => [
  state,
  item.kind,
  item.name === item.file ? item.file : `${item.name} (${item.file})`,
  cut(item.problem ?? item.gist ?? "", 200)
]

type Choice = "each" | "all" | "later" | "never"

const ask = <A>(prompt: Prompt.Prompt<A>) => Effect.orElseSucceed(askPerson(prompt), () => "later" as const)

/** Asks about one item. */
const askOne = Effect.fnUntraced(function* (places: Places, known: TrustedItem) {
  const { item } = known
  yield* tell("", `${item.kind} ${escaped(item.name)}, ${known.state}:`, ...linesOf(known).map((line) => `  ${line}`))
  const choice = yield* ask<Choice>(
    Prompt.Select<Choice>({
      message: `Trust ${escaped(item.name)}?`,
      choices: [
        { title: "no, not now", value: "later" },
        { title: "yes, as it is now", value: "all" },
        { title: "no, and ask again only when it changes", value: "never" }
      ]
    })
  )
  if (choice !== "later") yield* answer(places, [item], choice === "all")
})

/** Asks about the items that nobody decided on. */
const askAll = Effect.fnUntraced(function* (places: Places, open: ReadonlyArray<TrustedItem>) {
  const [only] = open
  if (only !== undefined && open.length === 1) return yield* askOne(places, only)
  yield* tell(
    "The files of this folder would have an agent follow or run:",
    ...table(open.map(rowOf)).map((row) => `  ${row}`)
  )
  const choice = yield* ask<Choice>(
    Prompt.Select<Choice>({
      message: "Do you trust them?",
      choices: [
        { title: "show them one by one", value: "each" },
        { title: `yes, all ${open.length} as they are now`, value: "all" },
        { title: "no, not now", value: "later" },
        { title: "no, and ask again only when they change", value: "never" }
      ]
    })
  )
  if (choice === "each") return yield* Effect.forEach(open, (known) => askOne(places, known), { discard: true })
  if (choice !== "later") {
    yield* answer(
      places,
      open.map(({ item }) => item),
      choice === "all"
    )
  }
})

/**
 * Reads the files of a folder, and gives the trusted ones. New and changed items are asked about at a terminal;
 * elsewhere a line says that they are left out.
 */
export const reviewProject = Effect.fnUntraced(function* (
  places: Places,
  options: { readonly asks: boolean; readonly tells: boolean; readonly trustsAll: boolean }
) {
  const { asks, tells, trustsAll } = options
  const items = yield* findItems(places.project)
  const states = yield* statesOf(places, items)
  const open = states.filter(
    ({ item, state }) => (state === "new" || state === "changed") && item.problem === undefined
  )
  const isAsked = trustsAll || (open.length > 0 && asks && (yield* canAsk))
  if (!isAsked) {
    if (tells && open.length > 0) {
      const names = open.map(({ item, state }) => `${state} ${item.kind} ${item.name}`).join(", ")
      yield* tell(`Left out, as it is not trusted: ${escaped(names)} (--trust, if it is yours)`)
    }
    return projectOf(states)
  }
  if (trustsAll) {
    const all = states.filter(({ item }) => item.problem === undefined).map(({ item }) => item)
    yield* answer(places, all, true)
    return projectOf(states.map((one) => (one.item.problem === undefined ? { ...one, state: "trusted" } : one)))
  }
  yield* askAll(places, open)
  // The shown content counts, even if the files have changed since.
  return projectOf(yield* statesOf(places, items))
})
