/** `/ps` and `/kill`: the processes in the background of a chat. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { describeEnd, type Process, ProcessTable } from "../../../backends/Processes.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { choose, problem, type Room, toProblem } from "../chat/room.ts"
import type { Ui } from "../chat/ui.ts"

const longest = 120

const describe = ({ command, end, id }: Process): string =>
  `${id} ${cut(cleanLine(command), longest)}: ${describeEnd(end)}`

const table = Effect.flatMap(
  Effect.serviceOption(ProcessTable),
  Option.match({
    onNone: () => Effect.fail(problem("This agent has no processes in the background.")),
    onSome: Effect.succeed
  })
)

/** Lists the processes. Outputs are files. */
export const list = Effect.fnUntraced(function* <E, R>({ ui }: Room<E, R>) {
  const all = yield* Effect.flatMap(table, ({ list: read }) => read)
  ui.parts([
    { kind: "note", level: "info", text: all.length === 0 ? "No process is in the background." : "Processes:" },
    ...all.flatMap((one) => [
      { kind: "note", level: "info", text: `  ${describe(one)}` } as const,
      { kind: "note", level: "info", text: `     ${cleanLine(one.output)}` } as const
    ])
  ])
})

/** Ends a process: the one that is named, or one of a menu. */
export const kill = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const processes = yield* table
  const running = (yield* processes.list).filter(({ end }) => end === undefined)
  if (running.length === 0) return yield* Effect.fail(problem("No process runs in the background."))
  const items = running.map(({ command, id }) => ({
    value: id,
    label: id,
    about: cut(cleanLine(command), longest),
    isWhole: true
  }))
  const id = argument.trim() === "" ? yield* choose(room, "the process to end:", items) : argument.trim()
  if (id === undefined) return
  room.ui.note("info", describe(yield* toProblem(processes.kill(id))))
})

/** Tells the person what earlier programs left, and which processes end while the chat is open. */
export const watch = Effect.fnUntraced(function* (ui: Pick<Ui, "note">) {
  const processes = yield* Effect.serviceOption(ProcessTable)
  if (Option.isNone(processes)) return
  for (const one of yield* processes.value.untold()) ui.note("info", describe(one))
  yield* Effect.forkScoped(
    Stream.runForEach(processes.value.ended, (one) => Effect.sync(() => ui.note("info", describe(one)))),
    { startImmediately: true }
  )
})
