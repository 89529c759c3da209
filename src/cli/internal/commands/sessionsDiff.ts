/** `deepagents sessions diff`: two branches of a conversation, side by side in a wide terminal. */
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import { SessionStore } from "../../../core/SessionStore.ts"
import { totalTokens } from "../../../core/Usage.ts"
import * as Replay from "../../../evals/Replay.ts"
import { escaped } from "../../../support/text/untrusted.ts"
import { facts } from "../chat/facts.ts"
import type { Places } from "../config/places.ts"
import { orFail } from "../failure.ts"
import { print, printJson, table } from "../output.ts"
import { fit, type Style, styleOf, widthOf, wrap } from "../render/style.ts"
import { sessions } from "../work/app.ts"
import * as Threads from "../work/threads.ts"
import { lines } from "./sessionsCommand.ts"

/** From this width on, the branches stand side by side. */
const wide = 100

const textOf = ({ messages }: Replay.Side): string =>
  messages
    .flatMap(lines)
    .flatMap((text) => text.split("\n"))
    .map((line) => `${escaped(line)}\n`)
    .join("")

const money = (cost: number | undefined): string => (cost === undefined ? "unknown" : `$${cost.toFixed(4)}`)

const factsOf = ({ calls, rounds, threadId, usage }: Replay.Side): ReadonlyArray<string> => [
  threadId,
  `${rounds}`,
  `${calls}`,
  `${totalTokens(usage)}`,
  money(usage.cost)
]

const pad = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - widthOf(text)))

/** Puts the lines of both sides into two columns. Lines of one side alone have its mark. */
const inColumns = (
  edits: ReadonlyArray<TextDiff.Edit<string>>,
  columns: number,
  style: Style
): ReadonlyArray<string> => {
  const half = Math.floor((columns - 3) / 2)
  const row = (left: string, right: string) => `${pad(left, half)} │ ${right}`.trimEnd()
  const cell = (mark: string, text: string) => wrap(text, half - 2).map((line) => fit(`${mark} ${line}`, half))
  const zip = (left: ReadonlyArray<string>, right: ReadonlyArray<string>) =>
    Array.from({ length: Math.max(left.length, right.length) }, (_, index) =>
      row(left[index] ?? "", right[index] ?? "")
    )
  const rows: Array<string> = []
  let removed: ReadonlyArray<string> = []
  const flush = (come: ReadonlyArray<string>) => {
    rows.push(
      ...zip(
        removed.flatMap((line) => cell("-", line)).map(style.red),
        come.flatMap((line) => cell("+", line)).map(style.green)
      )
    )
    removed = []
  }
  for (const edit of edits) {
    if (edit._tag === "Delete") {
      flush([])
      removed = edit.items
    } else if (edit._tag === "Insert") flush(edit.items)
    else {
      flush([])
      rows.push(...edit.items.flatMap((line) => zip(cell(" ", line), cell(" ", line))))
    }
  }
  flush([])
  return rows
}

const unified = (edits: ReadonlyArray<TextDiff.Edit<string>>, style: Style): ReadonlyArray<string> =>
  edits.flatMap((edit) =>
    edit.items.map((line) => {
      if (edit._tag === "Delete") return style.red(`- ${line}`)
      return edit._tag === "Insert" ? style.green(`+ ${line}`) : `  ${line}`
    })
  )

/** The lines of a comparison: in two columns from 100 columns on, else as a unified diff. */
export const renderComparison = (
  { left, right, shared }: Replay.Comparison,
  { columns, style }: { readonly columns: number; readonly style: Style }
): ReadonlyArray<string> => {
  const edits = TextDiff.lines(textOf(left), textOf(right), { maxEdits: 4_000 }).map((edit) => ({
    ...edit,
    items: edit.items.map((line) => line.replace(/\n$/, ""))
  }))
  return [
    ...table([["session", "rounds", "calls", "tokens", "cost"], factsOf(left), factsOf(right)]),
    "",
    `${shared.length} messages are the same in both; then:`,
    ...(columns >= wide ? inColumns(edits, columns, style) : unified(edits, style))
  ]
}

/** Shows two sessions behind their common messages, with the usage of both. */
export const compare = (places: Places, one: string, other: string, asJson: boolean) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const [left, right] = [yield* Threads.find(store, one), yield* Threads.find(store, other)]
    const comparison = yield* orFail("failed")(Replay.compare(left.threadId, right.threadId))
    if (asJson) return yield* printJson(comparison)
    const { colours, columns } = facts()
    return yield* print(...renderComparison(comparison, { columns, style: styleOf(colours) }))
  }).pipe(Effect.provide(sessions(places)))
