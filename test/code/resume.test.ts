/** Scripts that are cut off at one of their effects: no effect happens twice, and unknown outcomes are reported. */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { Agent, Approval } from "effect-deepagents"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { isFull } from "../scale.ts"
import { agentOf, effects, model, Result } from "./cutOff.ts"

const resultOf = Schema.decodeUnknownSync(Result)

/** Checks the end of a run that was cut off at its n-th effect. */
const check = (at: number, did: ReadonlyArray<string>, text: string): void => {
  assert.deepStrictEqual([...did].toSorted(), [...effects].toSorted(), `cut off at ${at}`)
  const { first, helped, last, paid } = resultOf(text.slice(text.indexOf("{")))
  const told = [...first, helped, paid, ...last]
  // The sub-agent's model is told of its cut-off calls.
  const unknown = told.filter((one) => one === "UnknownOutcome")
  assert.isAtMost(unknown.length, at <= 4 ? 4 : at === 5 ? 0 : 1, `cut off at ${at}`)
  assert.isAbove(unknown.length, at === 5 ? -1 : 0, `cut off at ${at}`)
}

layer(NodeScripts.layer())("a script that is interrupted and resumed", (it) => {
  it.effect("does nothing twice, at whichever effect", () =>
    Effect.forEach(
      effects.map((_, index) => index + 1),
      (at) =>
        Effect.gen(function* () {
          const did: Array<string> = []
          const reached = yield* Deferred.make<void>()
          const agent = agentOf((what) =>
            Effect.suspend(() => {
              did.push(what)
              return did.length === at
                ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
                : Effect.void
            })
          )
          const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
          const services = yield* Layer.build(Layer.merge(model, sessions))
          const untilDone = Effect.gen(function* () {
            let result = yield* Agent.run(agent, "go", { threadId: "t" })
            while (result.stopReason === "suspended") {
              const decisions = result.pending.map((one) => Approval.approve(one))
              result = yield* Agent.resume(agent, { threadId: "t", decisions })
            }
            return result
          })
          const fiber = yield* Effect.forkChild(Effect.provide(untilDone, services))
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          let result = yield* Effect.provide(Agent.resume(agent, { threadId: "t", decisions: [] }), services)
          while (result.stopReason === "suspended") {
            const decisions = result.pending.map((one) => Approval.approve(one))
            result = yield* Effect.provide(Agent.resume(agent, { threadId: "t", decisions }), services)
          }
          check(at, did, result.text)
        }),
      { discard: true }
    )
  )
})

const runChild = (folder: string, killAt: number) =>
  new Promise<void>((resolve) => {
    const child = spawn(
      process.execPath,
      [
        "--conditions=@effect-deepagents/source",
        new URL("children/crash.ts", import.meta.url).pathname,
        folder,
        String(killAt)
      ],
      { stdio: "ignore" }
    )
    child.on("exit", () => resolve())
  })

describe("a process that is killed in a script", () => {
  for (const at of isFull ? [1, 5, 6, 9] : [6]) {
    it(`does nothing twice after effect ${at}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "code-crash-"))
      await runChild(folder, at)
      assert.isFalse(existsSync(`${folder}/result`))
      await runChild(folder, 0)
      const did = readFileSync(`${folder}/did`, "utf8").trim().split("\n")
      check(at, did, readFileSync(`${folder}/result`, "utf8"))
      rmSync(folder, { recursive: true, force: true })
    })
  }
})
