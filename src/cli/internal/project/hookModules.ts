/** Hooks that are modules: their default export is asked in a worker, which is ended when it is late. */
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../core/Json.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"

/**
 * The program of a worker: it loads the module once, and answers one event after the other. The screen belongs to the
 * chat, so what the module prints is dropped. Streams of a worker would keep the process from ending.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
process.stdout.write = process.stderr.write = () => true
const loaded = import(workerData.url)
loaded.catch(() => {})
parentPort.on("message", async ({ id, input }) => {
  try {
    const { default: hook } = await loaded
    if (typeof hook !== "function") throw new Error("its default export is no function")
    const answer = await hook(input)
    parentPort.postMessage({ id, answer: answer === undefined ? "" : typeof answer === "string" ? answer : JSON.stringify(answer) ?? "" })
  } catch (error) {
    parentPort.postMessage({ id, problem: String(error instanceof Error ? error.message : error) })
  }
})`

/** The most megabytes of a worker's objects. */
const mostMegabytes = 256

const Reply = Schema.Struct({
  id: Schema.Finite,
  answer: Schema.optionalKey(Schema.String),
  problem: Schema.optionalKey(Schema.String)
})
const isReply = Schema.is(Reply)

type Resume = (reply: Effect.Effect<string, string>) => void

interface HookWorker {
  readonly worker: Worker
  readonly waiting: Map<number, Resume>
}

const workers = new Map<string, HookWorker>()
let next = 0

const end = (file: string, hookWorker: HookWorker, problem: string): void => {
  if (workers.get(file) === hookWorker) workers.delete(file)
  for (const resume of hookWorker.waiting.values()) resume(Effect.fail(problem))
  hookWorker.waiting.clear()
}

const open = (file: string, env: { readonly [name: string]: string }): HookWorker => {
  const worker = new Worker(program, {
    eval: true,
    workerData: { url: pathToFileURL(file).href },
    env: { ...process.env, ...env },
    resourceLimits: { maxOldGenerationSizeMb: mostMegabytes }
  })
  const hookWorker: HookWorker = { worker, waiting: new Map() }
  worker.on("message", (reply: unknown) => {
    if (!isReply(reply)) return
    const resume = hookWorker.waiting.get(reply.id)
    hookWorker.waiting.delete(reply.id)
    resume?.(
      reply.problem === undefined ? Effect.succeed(reply.answer ?? "") : Effect.fail(cut(oneLine(reply.problem), 300))
    )
  })
  worker.on("error", (error) => end(file, hookWorker, `its worker failed: ${cut(oneLine(String(error)), 300)}`))
  worker.on("exit", () => end(file, hookWorker, "its worker ended"))
  // A program that is done does not wait for it.
  worker.unref()
  return hookWorker
}

/** Asks the module of a file. An interruption ends its worker, with all that it does. */
export const askModule = (
  file: string,
  input: JsonObject,
  env: { readonly [name: string]: string }
): Effect.Effect<string, string> =>
  Effect.callback<string, string>((resume) => {
    const hookWorker = workers.get(file) ?? open(file, env)
    workers.set(file, hookWorker)
    const id = next++
    hookWorker.waiting.set(id, resume)
    hookWorker.worker.postMessage({ id, input })
    return Effect.suspend(() => {
      end(file, hookWorker, "its worker was ended, since another event had no answer in time")
      return Effect.ignore(Effect.promise(() => hookWorker.worker.terminate()))
    })
  })
