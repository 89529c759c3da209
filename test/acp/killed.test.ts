/** A server that ends by `kill -9`, and one whose editor does: the next process goes on with the session. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { bundle } from "../bundle.ts"
import { isFull } from "../scale.ts"
import { makeFolder, openProgram } from "./editor.ts"

const server = bundle(new URL("children/server.ts", import.meta.url))

const linesOf = (file: string): ReadonlyArray<string> =>
  existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []

const start = (folder: string, ...hang: ReadonlyArray<string>) =>
  openProgram(server, join(folder, "threads.db"), join(folder, "effects"), ...hang).pipe(
    Effect.tap((editor) => Effect.promise(() => editor.initialize()))
  )

type Running = Effect.Success<ReturnType<typeof start>>

/** The six lines that a turn appends. */
const lines = ["0", "1", "2", "3", "4", "5"]

/** Begins a turn in a process, and ends it while a call hangs. */
const cutOff = Effect.fnUntraced(function* (
  folder: string,
  line: number,
  place: "before" | "after",
  end: (running: Running) => unknown
) {
  const first = yield* start(folder, `${line}:${place}`)
  const { sessionId } = yield* Effect.promise(() => first.open(folder))
  const answer = first.prompt(sessionId, "Begin").catch(() => undefined)
  yield* Effect.promise(() =>
    first.until(() => first.updates.filter(({ update }) => update.sessionUpdate === "tool_call").length > line)
  )
  const effects = line + (place === "after" ? 1 : 0)
  yield* Effect.suspend(() =>
    linesOf(join(folder, "effects")).length >= effects ? Effect.void : Effect.fail("not yet")
  ).pipe(Effect.retry(Schedule.spaced("10 millis")))
  yield* Effect.promise(async () => end(first))
  yield* Effect.promise(() => first.over)
  void answer
  return sessionId
}, Effect.scoped)

/** Loads the session in another process, and goes on. */
const goOn = Effect.fnUntraced(function* (folder: string, sessionId: string) {
  const second = yield* start(folder)
  yield* Effect.promise(() => second.agent.request("session/load", { sessionId, cwd: folder, mcpServers: [] }))
  yield* Effect.promise(() => second.settled())
  const history = second.taken()
  const { stopReason } = yield* Effect.promise(() => second.prompt(sessionId, "/resume"))
  assert.strictEqual(stopReason, "end_turn")
  assert.deepStrictEqual(second.checks.problems, [])
  return { history, text: second.text() }
}, Effect.scoped)

const check = Effect.fnUntraced(function* (
  line: number,
  place: "before" | "after",
  end: (running: Running) => unknown
) {
  const folder = makeFolder()
  const sessionId = yield* cutOff(folder, line, place, end)
  const { history, text } = yield* goOn(folder, sessionId)
  const prompts = history.flatMap((one) =>
    one.sessionUpdate === "user_message_chunk" && one.content.type === "text" ? [one.content.text] : []
  )
  assert.deepStrictEqual(prompts, ["Begin"])
  // Nothing is done twice. The call that was cut off has an unknown outcome.
  const expected = place === "after" ? lines : lines.filter((one) => one !== String(line))
  assert.deepStrictEqual(linesOf(join(folder, "effects")), expected)
  for (const one of lines.filter((other) => other !== String(line))) assert.include(text, `appended ${one}`)
  assert.notInclude(text, `appended ${line}`)
  assert.include(text, "All is done")
})

const cuts = [
  [2, "after"],
  [0, "before"],
  [0, "after"],
  [5, "before"]
] as const

describe("a turn over ACP that is cut off goes on in another process", { timeout: 120_000 }, () => {
  for (const [line, place] of isFull ? cuts : cuts.slice(0, 1)) {
    it.live(`the server is killed ${place} the effect of call ${line}`, () =>
      check(line, place, (running) => running.kill())
    )
    it.live(`the editor dies ${place} the effect of call ${line}`, () =>
      check(line, place, (running) => running.leave())
    )
  }
})
