/** Invariants under many faults at once: runners that are killed or stand still longer than their locks last, cut and slow connections, an unreachable Postgres. Some seconds by default, ninety with `TEST_SCALE=full`; `CHAOS_SEED` repeats the faults of a run. */
import { type ChildProcess, spawn } from "node:child_process"
import { assert, layer } from "@effect/vitest"
import { Cause, Context, Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { Approval, Message } from "effect-deepagents"
import { AgentClient } from "effect-deepagents/durable"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { bundle } from "../bundle.ts"
import { isFull } from "../scale.ts"
import { freePort } from "../servers/port.ts"
import { postgres } from "../servers/postgres.ts"
import { makeProxy, type Proxy } from "../sessions/proxy.ts"
import { did, guard, teller } from "./children/agents.ts"
import { cluster } from "./children/cluster.ts"
import { folder } from "./places.ts"

const seconds = isFull ? 90 : 6
const threads = isFull ? 40 : 12
/** How long anything that was accepted may take, once nothing goes wrong any more. */
const patience = "2 minutes"

class Url extends Context.Service<Url, string>()("test/Url") {}

const Place = Layer.unwrap(Effect.map(postgres, (url) => Layer.merge(Layer.succeed(Url, url), cluster(url))))

/** A runner that is started again whenever it ended. */
interface Supervised {
  readonly signal: (signal: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT") => Effect.Effect<void>
}

const supervised = Effect.fnUntraced(function* (url: string, path: string) {
  const file = bundle(new URL("children/runner.ts", import.meta.url))
  let child: ChildProcess | undefined
  const life = Effect.gen(function* () {
    const port = yield* freePort
    yield* Effect.callback<void>((resume) => {
      child = spawn(process.execPath, [file, url, String(port), path], {
        stdio: "ignore"
      })
      child.once("exit", () => resume(Effect.void))
    })
    yield* Effect.sleep("200 millis")
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => child?.kill("SIGKILL")))
  yield* Effect.forkScoped(Effect.forever(life))
  const one: Supervised = { signal: (signal) => Effect.sync(() => void child?.kill(signal)) }
  return one
})

type Fault = "kill" | "stop" | "freeze" | "drop" | "away" | "slow"

/** Injects one fault after the other into the cluster. Returns the list of faults. */
const breakIt = Effect.fnUntraced(function* (runners: ReadonlyArray<Supervised>, proxy: Proxy, seed: number) {
  const kinds: ReadonlyArray<Fault> = ["kill", "kill", "stop", "freeze", "drop", "drop", "away", "slow"]
  const plan = fc.sample(
    fc.record({
      kind: fc.constantFrom(...kinds),
      who: fc.nat(runners.length - 1),
      pause: fc.integer({ min: 500, max: 4_000 }),
      length: fc.integer({ min: 100, max: 4_000 })
    }),
    { seed, numRuns: 1_000 }
  )
  // A short run has one of each that is quick.
  const quick: ReadonlyArray<Fault> = ["kill", "drop", "slow"]
  const done: Array<Fault> = []
  const end = Date.now() + seconds * 1_000
  for (const { kind: any, length, pause, who } of plan) {
    const kind = isFull ? any : (quick[done.length] ?? "kill")
    yield* Effect.sleep(isFull ? pause : 1_500)
    if (Date.now() > end) break
    done.push(kind)
    const runner = runners[who]
    if (runner === undefined) continue
    switch (kind) {
      case "kill":
        yield* runner.signal("SIGKILL")
        break
      case "stop":
        yield* runner.signal("SIGTERM")
        break
      case "freeze":
        yield* runner.signal("SIGSTOP")
        yield* Effect.sleep(5_000 + length)
        yield* runner.signal("SIGCONT")
        break
      case "drop":
        yield* Effect.andThen(proxy.cut, proxy.mend)
        break
      case "away":
        yield* proxy.cut
        yield* Effect.sleep(1_000 + length)
        yield* proxy.mend
        break
      case "slow":
        yield* proxy.delay(100 + length / 10)
        yield* Effect.sleep(isFull ? 3_000 : 500)
        yield* proxy.delay(0)
        break
    }
  }
  return done
})

/** The inputs that a client sent to a thread, in order, and their outcomes. */
interface Asked {
  readonly words: string
  readonly answered: string
  readonly stopReason: string
}

/** The entries of a thread for an input, and for the input before it: a line for each. */
const entriesOf = Effect.fnUntraced(function* (threadId: string, words: string) {
  const store = yield* SessionStore.SessionStore
  const lines: Array<string> = []
  let isFound = false
  let from: string | undefined
  for (let more = true; more;) {
    const { entries, next } = yield* store.load(threadId, { from, limit: 200 })
    for (const { at, entry } of entries.toReversed()) {
      lines.unshift(`${at} ${JSON.stringify(entry)}`)
      if (entry._tag !== "Message" || entry.message.role !== "human") continue
      if (isFound) return lines.slice(0, 60).join("\n")
      isFound = Message.text(entry.message) === words
      // Entries behind the next input are left out.
      if (!isFound) lines.length = 1
    }
    from = next ?? undefined
    more = next !== null
  }
  return lines.slice(0, 60).join("\n")
})

const textOf = (message: Message.Message | undefined) => (message === undefined ? "" : Message.text(message))

layer(Place, { timeout: 60_000, excludeTestServices: true })("chaos", (it) => {
  it.effect(
    "nothing acknowledged is lost, nothing runs twice, nothing untrue is said, and order is kept",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const url = new URL(yield* Url)
      const proxy = yield* makeProxy(Number(url.port))
      url.port = String(proxy.port)
      const count = isFull ? 3 : 2
      const runners = yield* Effect.all(
        Array.from({ length: count }, () => supervised(url.toString(), path)),
        { concurrency: "unbounded" }
      )
      const seed = Number(process.env["CHAOS_SEED"] ?? Date.now() % 1_000_000)
      let isOver = false
      let answered = 0

      /** Payments, one after the other. */
      const pays = Effect.fnUntraced(function* (name: string) {
        const client = yield* AgentClient.of(teller(path), name)
        const asked: Array<Asked> = []
        while (!isOver) {
          const about = `${name}-${asked.length}`
          const words = `${asked.length % 3 === 2 ? "both" : "pay"} ${about}`
          const { stopReason, text } = yield* client.send(words, { id: about })
          asked.push({ words, answered: text, stopReason })
          answered++
        }
        return { name, client, asked }
      })
      /** A person who approves pending requests one after the other. */
      const decides = Effect.fnUntraced(function* (name: string) {
        const client = yield* AgentClient.of(guard(path), name)
        const asked: Array<Asked> = []
        while (!isOver) {
          const about = `${name}-${asked.length}`
          const isWait = asked.length % 4 === 3
          const words = `${isWait ? "wait" : "ship"} ${about}`
          const first = yield* client.send(words, { id: about })
          if (isWait && first.stopReason === "completed") {
            // It was answered late, and the wait is over.
            asked.push({ words, answered: first.text, stopReason: first.stopReason })
            answered++
            continue
          }
          if (first.stopReason !== "suspended") {
            const entries = yield* entriesOf(name, words)
            assert.fail(`${words}: ${first.stopReason}, ${JSON.stringify(first.text)} (seed ${seed})\n${entries}`)
          }
          if (isWait) {
            const history = yield* client.history.pipe(
              // A read may fail while the storage is away.
              Effect.retry(Schedule.spaced("200 millis")),
              Effect.delay("500 millis"),
              Effect.repeat({ until: (messages) => textOf(messages.at(-1)) === `done ${about}` }),
              Effect.timeoutOrElse({
                duration: patience,
                orElse: () => Effect.die(new Error(`${words} never ended (seed ${seed})`))
              })
            )
            asked.push({ words, answered: textOf(history.at(-1)), stopReason: "read" })
            answered++
          } else {
            const second = yield* client.decide(first.pending.map((request) => Approval.approve(request)))
            assert.strictEqual(second.stopReason, "completed", `${words} (seed ${seed})`)
            asked.push({ words, answered: second.text, stopReason: second.stopReason })
            answered++
          }
        }
        return { name, client, asked }
      })

      const watched = yield* AgentClient.of(teller(path), "t0")
      const steps: Array<number> = []
      const watch = Stream.runForEach(
        Stream.suspend(() => watched.events({ after: steps.at(-1) ?? 0 })),
        (event) => Effect.sync(() => (event._tag === "Stored" ? steps.push(event.step) : 0))
      )
      const watching = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(Effect.ignore(watch), Effect.sleep("100 millis")))
      )
      const working = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: threads }, (_, index) => index),
          (index) =>
            (index % 2 === 0 ? pays(`t${index}`) : decides(`t${index}`)).pipe(
              Effect.catchCause((cause) => Effect.die(new Error(`t${index} (seed ${seed}): ${Cause.pretty(cause)}`)))
            ),
          { concurrency: "unbounded" }
        )
      )
      // Runners take seconds to start: nothing goes wrong before they are at work.
      yield* Effect.repeat(Effect.sleep("50 millis"), { until: () => answered > 0 })
      const faults = yield* breakIt(runners, proxy, seed)
      isOver = true
      const all = yield* Effect.timeoutOrElse(Fiber.join(working), {
        duration: patience,
        orElse: () => Effect.die(new Error(`an input was not answered (seed ${seed}, ${faults.join(" ")})`))
      })
      yield* Fiber.interrupt(watching)

      const lines = did(path)
      const times = new Map<string, number>()
      for (const { what } of lines) times.set(what, (times.get(what) ?? 0) + 1)
      const told = { known: 0, unknown: 0 }
      const note = `(seed ${seed}: ${faults.join(" ")})`
      for (const { asked, name } of all) {
        const messages = (yield* SessionStore.checkpoint(name))?.messages ?? []
        for (const { answered: text, stopReason, words } of asked) {
          const right = `done ${words.split(" ")[1]}`
          if (text === right) continue
          const entries = yield* entriesOf(name, words)
          assert.fail(`${words}: ${JSON.stringify(text)} (${stopReason}), not ${right} ${note}\n${entries}`)
        }
        assert.deepStrictEqual(
          messages.flatMap((message) => (message.role === "human" ? [Message.text(message)] : [])),
          asked.map(({ words }) => words),
          `all that was asked of ${name}, once and in order ${note}`
        )
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [], `${name} ${note}`)
        assert.strictEqual(new Set(messages.map(({ id }) => id)).size, messages.length, `${name} ${note}`)
        const calls = new Map(
          messages.flatMap((message) =>
            message.role === "ai" ? message.toolCalls.map((call) => [call.id, call] as const) : []
          )
        )
        for (const message of messages) {
          if (message.role !== "tool" || (message.toolName !== "pay" && message.toolName !== "ship")) continue
          const about = calls.get(message.toolCallId)?.arguments["about"]
          const what = `${message.toolName} ${typeof about === "string" ? about : ""}`
          const text = Message.text(message)
          const ran = times.get(what) ?? 0
          const why = `${what} ran ${ran} times, and is told of as ${JSON.stringify(text)} ${note}`
          assert.isAtMost(ran, 1, why)
          if (!message.isError) {
            told.known++
            assert.strictEqual(ran, 1, why)
            assert.strictEqual(times.get(what.replace(" ", "-end ")), 1, why)
          } else {
            told.unknown++
            assert.isFalse(ran > 0 && text.includes("not executed"), why)
          }
        }
      }
      assert.deepStrictEqual(
        steps,
        steps.map((_, index) => index + 1),
        `what a reader of events saw ${note}`
      )
      assert.isAtLeast(answered, threads)
      yield* Effect.logInfo(
        `chaos: seed ${seed}, ${faults.length} faults (${faults.join(" ")}), ${answered} inputs answered, ${told.known} calls known, ${told.unknown} told as unknown`
      )
    }, Effect.scoped),
    (seconds + 300) * 1_000
  )
})
