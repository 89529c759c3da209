/** A server that is killed again and again, and a reader that comes again. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Server } from "effect-deepagents/server"
import { bundle } from "../bundle.ts"
import { endChild, startServer } from "../child.ts"
import { isFull } from "../scale.ts"
import { ask, readFrames } from "./door.ts"
import { foldFrames, showState, type State } from "./reader.ts"

/** The number that the last frame calls the tool with. */
const calledWith = (frame: Server.Frame | undefined): number =>
  frame?._tag === "Event" && frame.event._tag === "ToolCalled" ? Number(frame.event.arguments["n"]) : -1

/** The calls in which the server is killed. */
const ends: ReadonlyArray<number> = isFull ? [1, 3, 5] : [3]

describe(`a server that is killed at work, ${ends.length} times`, () => {
  it.live(
    "runs each accepted input once, and a returning reader has the same in the end as the store",
    () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "killed-"))
        const file = bundle(new URL("children/killedServer.ts", import.meta.url))
        const first = yield* startServer(file, [folder, "0"])
        const { url } = first
        let child = first.child
        const { port } = new URL(url)
        for (const n of [1, 3, 5]) if (!ends.includes(n)) writeFileSync(join(folder, `go-${n}`), "")
        const send = ask(`${url}/threads/t/runs`, {
          token: "token",
          body: { agent: "helper", input: "Note all", id: "mail-1" }
        })
        assert.strictEqual((yield* send).at("isNew"), true)
        let state: State | undefined
        let after: string | undefined
        const killed = new Set<number>()
        for (;;) {
          const { frames, isCut } = yield* readFrames(`${url}/threads/t/events`, {
            token: "token",
            after,
            isEnough: (some) => ends.includes(calledWith(some.at(-1))) && !killed.has(calledWith(some.at(-1)))
          })
          state = foldFrames(frames, state)
          after = frames.at(-1)?.position ?? after
          if (!isCut) break
          const n = calledWith(frames.at(-1))
          killed.add(n)
          yield* endChild(child)
          writeFileSync(join(folder, `go-${n}`), "")
          child = (yield* startServer(file, [folder, port])).child
          // Sent again, it is known.
          assert.strictEqual((yield* send).at("isNew"), false)
        }
        assert.deepStrictEqual([...killed], ends)
        assert.isAtLeast(state.resets, ends.length)
        assert.strictEqual(readFileSync(join(folder, "effects"), "utf8"), "0\n1\n2\n3\n4\n5\n")
        yield* endChild(child)
        child = (yield* startServer(file, [folder, port])).child
        const stored = showState(foldFrames((yield* readFrames(`${url}/threads/t/events`, { token: "token" })).frames))
        assert.deepStrictEqual(showState(state), stored)
        assert.strictEqual(stored.end, "RunCompleted completed")
        assert.strictEqual(stored.calls.length, 6)
        assert.deepStrictEqual(
          stored.messages.flatMap(([role, id]) => (role === "human" ? [id] : [])),
          ["input:mail-1"]
        )
      }).pipe(Effect.scoped),
    240_000
  )
})
