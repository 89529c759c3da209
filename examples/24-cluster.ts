/**
 * A cluster from one script: a Postgres, two runners, and a client. The runner that works for a customer is killed in the
 * middle of it, and the other one finishes.
 */
import assert from "node:assert/strict"
import { type ChildProcess, spawn } from "node:child_process"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Deferred, Effect, Fiber, Stream } from "effect"
import { AgentClient } from "effect-deepagents/durable"
import { freePort } from "../test/servers/port.ts"
import { postgres } from "../test/servers/postgres.ts"
import { cluster, shop } from "./cluster/agent.ts"

const end = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

/** A process of its own. `onLine` is told what it says. */
const runner = Effect.fnUntraced(function* (url: string, onLine: (line: string) => void) {
  const port = yield* freePort
  const file = new URL("cluster/runner.ts", import.meta.url).pathname
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [...process.execArgv, file, url, String(port)], { stdio: ["ignore", "pipe", "inherit"] })
    ),
    end
  )
  child.stdout.on("data", (chunk) => onLine(String(chunk).trim()))
  return child
})

const program = Effect.gen(function* () {
  const url = yield* postgres
  const packing = yield* Deferred.make<number>()
  const onLine = (line: string) => {
    console.log(line)
    const pid = /^runner (\d+): begins to pack/m.exec(line)?.[1]
    if (pid !== undefined) Deferred.doneUnsafe(packing, Effect.succeed(Number(pid)))
  }
  const runners = yield* Effect.all([runner(url, onLine), runner(url, onLine)])

  yield* Effect.gen(function* () {
    const ada = yield* AgentClient.of(shop, "ada")
    const sending = yield* Effect.forkChild(ada.send("Where are my books?", { id: "mail-1" }))

    const pid = yield* Deferred.await(packing)
    yield* Console.log(`kill -9 ${pid}`)
    yield* Effect.forEach(runners, (child) => (child.pid === pid ? end(child) : Effect.void))

    const outcome = yield* Fiber.join(sending)
    yield* Console.log(`the answer: ${outcome.text}`)
    assert.equal(outcome.output, "Your two books are packed.")

    // The same mail again, say because its sender did not hear of the answer: it is not worked on twice.
    assert.deepEqual(yield* ada.send("Where are my books?", { id: "mail-1" }), outcome)
    const roles = (yield* ada.history).map(({ role }) => role)
    assert.deepEqual(roles, ["human", "ai", "tool", "ai", "tool", "ai"])

    // Who comes later reads what happened, from any step on.
    const steps = yield* ada.events({ after: 2 }).pipe(Stream.take(3), Stream.runCollect)
    for (const event of steps) if (event._tag === "Stored") yield* Console.log(`${event.step}: ${event.entry._tag}`)
  }).pipe(Effect.provide(cluster(url)))
})

NodeRuntime.runMain(Effect.scoped(program))
