/**
 * Servers that are processes to the client, and functions in this process: they answer in no time, however often they
 * are started.
 */
import { NodeHttpClient } from "@effect/platform-node"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Queue from "effect/Queue"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { type McpConfig, McpServers } from "../../src/mcp/index.ts"

export interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly [name: string]: unknown }
}

/** The side of the server: its messages and its end. The last words on standard error come a moment later. */
export interface Side {
  readonly say: (message: object) => void
  readonly reply: (result: object) => void
  readonly die: (lastWords?: string) => void
}

/** Answers a message. `start` counts the processes, from 1. */
export type Behaviour = (message: Message, side: Side, start: number) => void

const version = "2026-07-28"
const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" }

const turnsOf = (count: number) =>
  Effect.promise(async () => {
    for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve))
  })

/** Turns of the event loop, for work that takes no other time. */
export const turns = turnsOf(20)

/** The answers of a server without surprises, by the older protocol or the newer one. */
export const plain =
  (isModern: boolean, tools: () => ReadonlyArray<string>, more: Behaviour): Behaviour =>
  (message, side, start) => {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } }
    const list = tools().map((name) => ({ name, inputSchema: { type: "object" } }))
    if (message.method === "server/discover" && isModern) {
      return side.reply({ ...complete, supportedVersions: [version], capabilities })
    }
    // An older server knows no such method, and says so: a client waits seconds for a silent one.
    if (message.method === "server/discover") {
      return side.say({ id: message.id, error: { code: -32_601, message: "Method not found" } })
    }
    if (message.method === "initialize") {
      return side.reply({ protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "scripted", version: "1" } })
    }
    if (message.method === "tools/list") return side.reply(isModern ? { ...complete, tools: list } : { tools: list })
    return more(message, side, start)
  }

/** The layer of a client of one such server, `s`, and the counts of its started and running processes. */
export const scripted = (behaviour: Behaviour, config: Partial<McpConfig.StdioServer> = {}) => {
  const counts = { started: 0, running: 0 }
  const spawner = ChildProcessSpawner.make(() =>
    Effect.gen(function* () {
      const start = ++counts.started
      counts.running++
      const out = yield* Queue.unbounded<Uint8Array, Cause.Done>()
      const errors = yield* Queue.unbounded<Uint8Array, Cause.Done>()
      const ended = yield* Deferred.make<ChildProcessSpawner.ExitCode>()
      const end = Effect.andThen(Queue.end(out), Deferred.succeed(ended, ChildProcessSpawner.ExitCode(0)))
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          Effect.sync(() => counts.running--),
          end
        )
      )
      const say = (message: object): void =>
        void Queue.offerUnsafe(out, new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`))
      const handle = (line: string): void => {
        if (line === "") return
        const message = JSON.parse(line) as Message
        const { id } = message
        const die = (lastWords = ""): void => {
          const words = Effect.sync(() => Queue.offerUnsafe(errors, new TextEncoder().encode(lastWords)))
          Effect.runFork(end.pipe(Effect.andThen(turnsOf(8)), Effect.andThen(words), Effect.andThen(Queue.end(errors))))
        }
        behaviour(message, { say, die, reply: (result) => say({ id, result }) }, start)
      }
      return ChildProcessSpawner.makeHandle({
        pid: ChildProcessSpawner.ProcessId(start),
        exitCode: Deferred.await(ended),
        isRunning: Effect.map(Deferred.isDone(ended), (is) => !is),
        kill: () => Effect.asVoid(end),
        // It ends with its input.
        stdin: Sink.ensuring(
          Sink.forEach((chunk: Uint8Array) =>
            Effect.sync(() => new TextDecoder().decode(chunk).split("\n").forEach(handle))
          ),
          end
        ),
        stdout: Stream.fromQueue(out),
        stderr: Stream.fromQueue(errors),
        all: Stream.empty,
        getInputFd: () => Sink.drain,
        getOutputFd: () => Stream.empty,
        unref: Effect.succeed(Effect.void)
      })
    })
  )
  const layer = McpServers.layer({ s: { type: "stdio", command: "scripted", ...config } }).pipe(
    Layer.provide([Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, spawner), NodeHttpClient.layerUndici])
  )
  return { counts, layer }
}
