/** The threads in which scripts run: which are ready, and which run a script. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as threads from "../../support/effect/threads.ts"
import { type Answer, type Program, type Rest, type Script, ScriptError, type Scripts } from "../Scripts.ts"
import { type Fault, maxSaid, type Order, type Report, type Setup } from "./messages.ts"
import { ownStack, readSaid } from "./said.ts"

/** The limits of a script that sets none. */
export const defaults = { memory: 64 * 1024 * 1024, time: Duration.seconds(5), calls: 256 } as const

/** How much further the memory of a thread may grow than that of its script. */
const headroom = 32 * 1024 * 1024

/** A thread whose memory has grown beyond this is not used again: it never shrinks. */
const maxHeld = 48 * 1024 * 1024

/** How long the host waits for a script beyond the time that it may compute: it may stand in one long instruction. */
const grace = 1_000

/** How long a thread may take to start on a busy machine, and to free a script. */
const patience = 60_000

/** The heap of a thread in megabytes, beside the memory of its script. */
const maxHeap = 128

/** The number of scripts around the current one: a tool or an agent of a script may run another. */
export const Depth = Context.Reference<number>("effect-deepagents/code/Depth", { defaultValue: () => 0 })

interface Thread {
  readonly worker: threads.Worker
  readonly heap: number
  isGone: boolean
  /** True while its script rests, so that it can be freed. */
  isAtRest: boolean
  orders: number
}

/** Fails after a time of the machine, whatever the clock of the program says. */
const failAfter = (millis: number, error: () => ScriptError): Effect.Effect<never, ScriptError> =>
  Effect.callback<never, ScriptError>((resume) => {
    const timer = setTimeout(() => resume(Effect.fail(error())), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const install = "npm install quickjs-emscripten-core @jitl/quickjs-wasmfile-release-sync"

const describeTrouble = ({ isMemory, message, missing }: threads.Trouble): ScriptError =>
  missing === undefined
    ? new ScriptError({
        reason: isMemory ? "Memory" : "Crashed",
        message: `The thread of the script ended: ${message}`
      })
    : new ScriptError({
        reason: "Unavailable",
        message: /quickjs/.test(missing)
          ? `The package "${missing}" could not be loaded; install what runs scripts: ${install}`
          : "The thread that runs scripts can't start from a bundle; leave effect-deepagents outside of the bundle (external)."
      })

type NewOrder = Order extends infer One ? (One extends Order ? Omit<One, "id"> : never) : never

const hasEnded = new ScriptError({ reason: "Crashed", message: "The thread of the script has ended." })

const order = (thread: Thread, newOrder: NewOrder): Effect.Effect<Report, ScriptError> =>
  Effect.suspend(() =>
    thread.isGone
      ? Effect.fail(hasEnded)
      : Effect.mapError(threads.ask<Report>(thread.worker, { ...newOrder, id: ++thread.orders }), describeTrouble)
  )

const tooLong = (time: number) => (): ScriptError =>
  new ScriptError({ reason: "Time", message: `The script computed for more than ${time} ms.` })

const outOfMemory = "The script used more memory than it may."

const faults: { readonly [F in Fault]: ScriptError["reason"] } = {
  Syntax: "Syntax",
  Threw: "Threw",
  Time: "Time",
  Memory: "Memory",
  Size: "Size",
  Crashed: "Crashed"
}

/** The faults after which a thread can free its script, and run another one. */
const isHarmless = (reason: ScriptError["reason"]): boolean => reason === "Syntax" || reason === "Threw"

interface Options {
  /** The address of the program of the threads. */
  readonly program: () => URL
  readonly warm: number
  readonly most: number
}

/** Makes the pool. Its threads end with the scope. */
export const make = Effect.fnUntraced(function* ({ most, program, warm }: Options) {
  const ready: Array<Thread> = []
  const levels = new Map<number, Semaphore.Semaphore>()

  /** One limit a level: a script waits only for scripts that don't wait for it. */
  const levelOf = (depth: number): Semaphore.Semaphore => {
    const level = levels.get(depth) ?? Semaphore.makeUnsafe(most)
    levels.set(depth, level)
    return level
  }

  const end = (thread: Thread): Effect.Effect<void> =>
    Effect.suspend(() => {
      thread.isGone = true
      return threads.end(thread.worker)
    })

  const boot = Effect.fnUntraced(function* (heap: number) {
    const worker = yield* Effect.mapError(
      threads.start(program, maxHeap, {
        workerData: { heap },
        env: {},
        stdout: true,
        stderr: true,
        execArgv: ["--disable-warning=ExperimentalWarning"]
      }),
      describeTrouble
    )
    const thread: Thread = { worker, heap, isGone: false, isAtRest: true, orders: 0 }
    worker.on("exit", () => {
      thread.isGone = true
    })
    const notReady = () =>
      new ScriptError({ reason: "Unavailable", message: "The thread of the script did not start." })
    yield* Effect.onError(Effect.raceFirst(order(thread, { _tag: "Reset" }), failAfter(patience, notReady)), () =>
      end(thread)
    )
    return thread
  })

  const take = (heap: number): Effect.Effect<Thread, ScriptError> =>
    Effect.suspend(() => {
      while (ready.length > 0) {
        const at = ready.findLastIndex((one) => one.heap === heap)
        const [thread] = at === -1 ? [] : ready.splice(at, 1)
        if (thread === undefined) break
        if (thread.isGone) continue
        // An idle thread must not keep the process alive.
        thread.worker.ref()
        return Effect.succeed(thread)
      }
      return boot(heap)
    })

  const free = (thread: Thread): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (thread.isGone || !thread.isAtRest || ready.length >= warm) return end(thread)
      const freed = Effect.raceFirst(
        order(thread, { _tag: "Reset" }),
        failAfter(patience, () => new ScriptError({ reason: "Crashed", message: "" }))
      )
      return Effect.matchEffect(freed, {
        onFailure: () => end(thread),
        onSuccess: (report) => {
          const isClean = report._tag === "Clean" && report.held <= maxHeld && ready.length < warm && !thread.isGone
          if (!isClean) return end(thread)
          thread.worker.unref()
          ready.push(thread)
          return Effect.void
        }
      })
    })

  yield* Effect.addFinalizer(() => Effect.forEach(ready.splice(0), end, { discard: true }))

  const open = Effect.fnUntraced(function* (script: Program): Effect.fn.Return<Script, ScriptError, Scope.Scope> {
    const level = levelOf(yield* Depth)
    yield* Effect.acquireRelease(level.take(1), () => level.release(1), { interruptible: true })
    const memory = script.limits.memory ?? defaults.memory
    const time = Duration.toMillis(Duration.fromInputUnsafe(script.limits.time ?? defaults.time))
    const thread = yield* Effect.acquireRelease(take(memory + headroom), free)
    const setup: Setup = {
      seed: script.seed,
      now: script.now,
      tools: script.tools,
      calls: script.limits.calls ?? defaults.calls,
      size: maxSaid,
      args: JSON.stringify(script.args)
    }
    let elapsed = 0

    const turn = (newOrder: NewOrder): Effect.Effect<Rest, ScriptError> =>
      Effect.suspend(() => {
        thread.isAtRest = false
        return Effect.flatMap(
          Effect.raceFirst(order(thread, newOrder), failAfter(time - elapsed + grace, tooLong(time))),
          (report) => Effect.suspend(() => readReport(report))
        )
      })

    const readReport = (report: Report): Effect.Effect<Rest, ScriptError> => {
      if (report._tag === "Rest") {
        elapsed = report.spent
        return Effect.mapError(Effect.fromResult(readSaid(report.said)), settled).pipe(
          Effect.tap(() => Effect.sync(() => void (thread.isAtRest = true)))
        )
      }
      if (report._tag !== "Failed") return Effect.fail(new ScriptError({ reason: "Crashed", message: "It broke." }))
      const { fault, message, stack } = report
      const error = new ScriptError({ reason: faults[fault], message, stack: ownStack(stack) })
      return Effect.fail(settled(fault === "Time" ? tooLong(time)() : error))
    }

    /** Notes whether the thread can go on after a failure, and words it. */
    const settled = (error: ScriptError): ScriptError => {
      thread.isAtRest = isHarmless(error.reason)
      return error.reason === "Memory" ? new ScriptError({ reason: "Memory", message: outOfMemory }) : error
    }

    return {
      begin: turn({ _tag: "Begin", source: script.source, setup: JSON.stringify(setup), memory, time }),
      settle: (answers) => turn({ _tag: "Settle", answers: JSON.stringify(answers.map(pack)) })
    }
  })

  return { open } satisfies Scripts["Service"]
})

const pack = (answer: Answer): readonly [number, boolean, unknown] =>
  "error" in answer ? [answer.id, false, answer.error] : [answer.id, true, answer.value]
