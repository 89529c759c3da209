/** Servers of a cluster on one Postgres: a client of any of them has every thread. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import type { Server } from "effect-deepagents/server"
import { bundle } from "../bundle.ts"
import { endChild, startServer } from "../child.ts"
import { divided } from "../durable/places.ts"
import { freePort } from "../servers/port.ts"
import { postgres } from "../servers/postgres.ts"
import { ask, readFrames } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

/** Starts a server, and waits until it listens. */
const boot = Effect.fnUntraced(function* (file: string, database: string, folder: string) {
  return yield* startServer(file, [database, String(yield* freePort), folder])
})

const token = "token"
const post = ({ url }: { readonly url: string }, thread: string, input: string, id: string) =>
  ask(`${url}/threads/${thread}/runs`, { token, body: { agent: "helper", input, id } })

const isEvent = (tag: string) => (frame: Server.Frame) => frame._tag === "Event" && frame.event._tag === tag
const times = (frames: ReadonlyArray<Server.Frame>, tag: string) => frames.filter(isEvent(tag)).length

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [])

describe("two servers of a cluster", () => {
  it.live(
    "tell every event once at either of them, live, and go on after kill -9 of the one at work",
    () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "clustered-"))
        const file = bundle(new URL("children/clusterServer.ts", import.meta.url))
        const database = yield* postgres
        const one = yield* boot(file, database, folder)
        const two = yield* boot(file, database, folder)
        // A thread that moves would have other positions.
        yield* Effect.provide(divided, PgClient.layer({ url: Redacted.make(database) }))
        assert.strictEqual((yield* post(one, "t", "Hello", "0")).status, 202)
        yield* readFrames(`${one.url}/threads/t/events`, { token })
        // Both are there before the run, which is at work in the second call when they leave.
        let reading = 0
        const isAt = (frames: ReadonlyArray<Server.Frame>) => {
          if (frames.length === 1) reading++
          return times(frames, "ToolCalled") === 2
        }
        const watching = yield* Effect.forEach([one, two], ({ url }) =>
          Effect.forkChild(readFrames(`${url}/threads/t/events?follow=true`, { token, isEnough: isAt }))
        )
        while (reading < 2) yield* Effect.sleep("20 millis")
        assert.strictEqual((yield* post(one, "t", "Note all", "1")).status, 202)
        assert.strictEqual((yield* post(two, "t", "Note all", "1")).at("isNew"), false)
        const [left, right] = yield* Effect.forEach(watching, Fiber.join)
        assert.deepStrictEqual(left?.frames, right?.frames)
        assert.isAbove(times(left?.frames ?? [], "TextDelta"), 0)
        const [first = ""] = linesOf(join(folder, "effects"))
        const [, pid] = first.split(" ")
        const [owner, other] = String(one.child.pid) === pid ? [one, two] : [two, one]
        assert.strictEqual(String(owner.child.pid), pid)

        // The other runner takes inputs for a thread of the first one.
        assert.strictEqual((yield* post(other, "t", "And then?", "2")).status, 202)
        const state = yield* ask(`${other.url}/threads/t/state`, { token })
        assert.strictEqual(state.at("state"), "working")
        assert.strictEqual((yield* ask(`${other.url}/threads/t`, { token, method: "DELETE" })).status, 409)
        assert.strictEqual((yield* ask(`${other.url}/threads/none/state`, { token })).status, 404)

        let isRead = false
        const late = yield* Effect.forkChild(
          readFrames(`${other.url}/threads/t/events`, {
            token,
            isEnough: () => {
              isRead = true
              return false
            }
          })
        )
        while (!isRead) yield* Effect.sleep("20 millis")
        yield* endChild(owner.child, "SIGKILL")
        writeFileSync(join(folder, "go"), "")
        const { frames, isCut } = yield* Fiber.join(late)
        assert.isFalse(isCut)
        const stored = yield* readFrames(`${other.url}/threads/t/events`, { token })
        const whole = showState(foldFrames(stored.frames))
        assert.deepStrictEqual(
          whole.messages.flatMap(([role, id]) => (role === "human" ? [id] : [])),
          ["input:0", "input:1", "input:2"]
        )
        assert.strictEqual(whole.end, "RunCompleted completed")
        assert.deepStrictEqual(showState(foldFrames(frames)), whole)
        // Each save and each message was told once, also over the change of the owner.
        const told = frames.flatMap((frame) =>
          frame._tag === "Event" && frame.event._tag === "MessageAppended" ? [frame.event.message.id] : []
        )
        assert.deepStrictEqual(told, [...new Set(told)])
        assert.strictEqual(frames.filter(({ _tag }) => _tag === "Reset").length, 1)
        // The reader that the first one had comes to the other one, behind its last frame.
        const after = left?.frames.at(-1)?.position
        const rest = yield* readFrames(`${other.url}/threads/t/events`, { token, after })
        assert.deepStrictEqual(showState(foldFrames(rest.frames, foldFrames(left?.frames ?? []))), whole)
        assert.deepStrictEqual(linesOf(join(folder, "effects")), [
          `0 ${owner.child.pid} local`,
          `1 ${other.child.pid} local`,
          `2 ${other.child.pid} local`
        ])

        // A third runner joins. Threads without a reader go on with it, and it takes decisions.
        assert.strictEqual((yield* post(other, "w", "Pay", "3")).status, 202)
        yield* readFrames(`${other.url}/threads/w/events`, { token })
        const three = yield* boot(file, database, folder)
        yield* Effect.provide(divided, PgClient.layer({ url: Redacted.make(database) }))
        rmSync(join(folder, "go"))
        const alone = ["a", "b", "c", "d", "e", "f"]
        for (const name of alone) assert.strictEqual((yield* post(three, name, "Note all", "1")).status, 202)
        const effects = (n: number) =>
          linesOf(join(folder, "effects")).filter((line) => line.startsWith(`${n} `)).length
        while (effects(0) < 1 + alone.length) yield* Effect.sleep("20 millis")
        yield* endChild(other.child, "SIGKILL")
        writeFileSync(join(folder, "go"), "")
        while (effects(2) < 1 + alone.length) yield* Effect.sleep("20 millis")
        assert.deepStrictEqual([effects(0), effects(1), effects(2)], [7, 7, 7])
        const id = (yield* ask(`${three.url}/threads/w/state`, { token })).at("pending", 0, "id")
        const body = { decisions: [{ _tag: "Approve", id }] }
        assert.strictEqual((yield* ask(`${three.url}/threads/w/decisions`, { token, body })).status, 202)
        const last = showState(foldFrames((yield* readFrames(`${three.url}/threads/w/events`, { token })).frames))
        assert.strictEqual(last.end, "RunCompleted completed")
        assert.deepStrictEqual(linesOf(join(folder, "paid")), [String(three.child.pid)])
        // A reader that follows learns that its thread is gone, wherever it was deleted.
        const following = yield* Effect.forkChild(readFrames(`${three.url}/threads/w/events?follow=true`, { token }))
        yield* Effect.sleep("300 millis")
        assert.strictEqual((yield* ask(`${three.url}/threads/w`, { token, method: "DELETE" })).status, 204)
        yield* Fiber.join(following)
      }).pipe(Effect.scoped),
    240_000
  )
})
