/** One run, watched and steered by the clients of all protocols at once, on a server that is killed three times. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { Page } from "playwright-core"
import { bundle } from "../bundle.ts"
import { closeBrowser, open as openPage } from "../page/browser.ts"
import { buildPage } from "../page/site.ts"
import { isFull } from "../scale.ts"
import { clients, persist, type Scene, shownOf } from "./clients.ts"
import { readFrames } from "./door.ts"
import { textsOf, usePage } from "./pageClient.ts"
import { foldFrames } from "./reader.ts"
import { bundleTerminal, linesOf, useTerminal } from "./terminalClient.ts"

/** Starts the server, and waits until it listens. */
const boot = (file: string, folder: string, port: string, children: Set<ChildProcess>, site: ReadonlyArray<string>) =>
  new Promise<{ readonly child: ChildProcess; readonly url: string; readonly link: string }>((resolve) => {
    const child = spawn(process.execPath, [file, folder, port, ...site], { stdio: ["ignore", "pipe", "ignore"] })
    children.add(child)
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += String(chunk)
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? []
      const [link] = /#t=\S+/.exec(text) ?? []
      if (url !== undefined && link !== undefined) resolve({ child, url, link })
    })
  })

const kill = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    child.on("close", () => resolve())
    child.kill("SIGKILL")
  })

/** Random numbers of a seed, below `most`. */
const randomOf = (seed: number) => {
  let state = seed
  return (most: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % most
  }
}

const play = async (
  file: string,
  seed: number,
  children: Set<ChildProcess>,
  site: ReadonlyArray<string>,
  terminal: string,
  open: (url: string) => Promise<Page | undefined>
) => {
  const folder = mkdtempSync(join(tmpdir(), "everyone-"))
  const random = randomOf(seed)
  const first = await boot(file, folder, "0", children, site)
  const { url } = first
  let { child } = first
  const { port } = new URL(url)
  let kills = 0
  let events = 0
  const ended = new AbortController()
  let killing: Promise<void> | undefined
  let next = 80 + random(120)
  const killAgain = async () => {
    await kill(child)
    ;({ child } = await boot(file, folder, port, children, site))
    killing = undefined
  }
  const go = join(folder, "go")
  const paid = join(folder, "paid")
  const scene = (own: (most: number) => number): Scene => ({
    url,
    token: "token",
    thread: "shared",
    run: "0123456789abcdef0123456789abcdef",
    input: "Note and pay",
    patience: () => 5 + own(120),
    approves: () => own(2) === 0,
    steered: () => writeFileSync(go, ""),
    note: () => {
      if (++events < next || kills === 3 || killing !== undefined) return
      next = events + 100 + random(160)
      kills++
      killing = killAgain()
    }
  })
  const page = await open(`${url}/${first.link}`)
  // The token of a link counts once: its session is there before the first kill.
  await page?.locator(".composer textarea").waitFor()
  const all = Object.entries(clients).map(async ([name, make], index) => {
    const shown = await persist(url, make(scene(randomOf(seed * 100 + index))), ended.signal)
    return [name, shown] as const
  })
  const reading = page === undefined ? undefined : usePage(page, scene(randomOf(seed * 100 + all.length)), ended.signal)
  const looking = useTerminal(terminal, scene(randomOf(seed * 100 + all.length + 1)), ended.signal)
  const limit = setTimeout(() => ended.abort(), 80_000)
  const shown = await Promise.all(all)
  clearTimeout(limit)
  if (ended.signal.aborted) writeFileSync(go, "")
  ended.abort()
  await reading
  const program = await looking
  await killing
  await kill(child)
  ;({ child } = await boot(file, folder, port, children, site))
  const { frames } = await Effect.runPromise(readFrames(`${url}/threads/shared/events`, { token: "token" }))
  const stored = shownOf(foldFrames(frames))
  const onPage = page === undefined ? stored.texts : await textsOf(page, stored.texts.length)
  const lines = program === undefined ? [] : await linesOf(program, "All of it is done.")
  await kill(child)
  const notes = existsSync(paid) ? readFileSync(paid, "utf8").split("\n").filter(Boolean) : []
  return { kills, shown, frames, lines, onPage, paid: notes }
}

afterAll(closeBrowser)

const seeds = isFull ? [1, 2, 3, 4] : [1]

describe("one thread, every client", () => {
  for (const seed of seeds) {
    it.live(
      `has the same transcript in all clients, cut at random, over three kills of the server (${seed})`,
      () =>
        Effect.gen(function* () {
          const file = bundle(new URL("children/sharedServer.ts", import.meta.url))
          const children = new Set<ChildProcess>()
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              for (const child of children) child.kill("SIGKILL")
            })
          )
          // The page needs a browser, which is for the full scale.
          const site = isFull ? [yield* Effect.promise(buildPage)] : []
          const terminal = bundleTerminal()
          const context = yield* Effect.context<Scope.Scope>()
          const open = (url: string) =>
            isFull ? Effect.runPromiseWith(context)(openPage(url)) : Promise.resolve(undefined)
          const { frames, kills, lines, onPage, paid, shown } = yield* Effect.promise(() =>
            play(file, seed, children, site, terminal, open)
          )
          assert.strictEqual(kills, 3)
          const state = foldFrames(frames)
          const stored = shownOf(state)
          assert.strictEqual(stored.end, "RunCompleted completed")
          // The run is steered before its end, or at its end: then it goes on for one more turn.
          assert.isAtLeast(stored.texts.length, 5)
          assert.deepStrictEqual(Object.keys(stored.calls ?? {}).length, 6)
          assert.deepStrictEqual(
            onPage.map((text) => text.trim()),
            stored.texts.map((text) => text.trim())
          )
          // The lines of the terminal can't be taken back: each text and each result was written once.
          assert.deepStrictEqual(
            lines.filter((line) => /^(?:This is round|All of it)/.test(line)).map((line) => line.trim()),
            stored.texts.map((text) => text.trim())
          )
          const isResult = (line: string) => /^(?:noted|paid) \d+$/.test(line)
          assert.deepStrictEqual(
            lines
              .map((line) => line.trim())
              .filter(isResult)
              .toSorted(),
            Object.values(stored.calls ?? {})
              .filter(isResult)
              .toSorted()
          )
          for (const [name, one] of shown) {
            assert.deepStrictEqual(
              one,
              one?.calls === undefined ? { texts: stored.texts, end: stored.end } : stored,
              name
            )
          }
          const humans = [...state.now.messages.values()].filter(({ role }) => role === "human")
          // Steering counts each time: unanswered steering of a killed server is sent again.
          assert.isAtLeast(humans.length, 2)
          assert.lengthOf(
            humans.filter(({ id }) => id.startsWith("input:")),
            1
          )
          // Each request has one decision, and only approved payments were made, once.
          const decisions = frames.flatMap((frame) =>
            frame._tag === "Event" && frame.event._tag === "ApprovalResolved" ? [frame.event.id] : []
          )
          assert.lengthOf(decisions, 2)
          assert.deepStrictEqual(new Set(decisions), new Set(state.now.requests.keys()))
          const results = Object.values(stored.calls ?? {}).filter((text) => text.startsWith("paid "))
          assert.deepStrictEqual(paid.map((n) => `paid ${n}`).toSorted(), results.toSorted())
        }).pipe(Effect.scoped),
      150_000
    )
  }
})
