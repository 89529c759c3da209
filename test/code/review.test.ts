/** Scripts that a person reviews: only the shown effects happen, and only after an approval. */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Backend } from "effect-deepagents"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { isFull } from "../scale.ts"
import { runAll, snapshot } from "./reviewed.ts"

const approve = () => Effect.succeed(true)

layer(NodeScripts.layer())("a script under review", (it) => {
  it.effect("asks once, with a list and diffs, and performs the shown effects", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      const script = `
        const found = await tools.glob({ pattern: "*.txt" })
        for (const file_path of ["/a.txt", "/b.txt"]) {
          await tools.read_file({ file_path })
          await tools.edit_file({ file_path, old_string: "b", new_string: "B" })
        }
        await tools.write_file({ file_path: "/n.txt", content: "new" })
        const now = await tools.read_file({ file_path: "/n.txt" })
        return [await tools.post({ text: "done" }), now.includes("new"), found.includes("a.txt")]`
      const {
        files: after,
        requests,
        text
      } = yield* runAll(script, { did }, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* snapshot, { "/a.txt": "a\nb\n", "/b.txt": "b\n", "/d/c.txt": "c\n" })
          assert.deepStrictEqual(did, [])
          return true
        }).pipe(Effect.orDie)
      )
      assert.strictEqual(text, `["posted done",true,true]`)
      assert.strictEqual(requests.length, 1)
      assert.match(requests[0]?.description ?? "", /these 4 things[^]*\/a\.txt[^]*-b\n\+B[^]*\/n\.txt[^]*\+new/)
      assert.match(requests[0]?.description ?? "", /posts are asked about/)
      assert.deepStrictEqual(after, { "/a.txt": "a\nB\n", "/b.txt": "B\n", "/d/c.txt": "c\n", "/n.txt": "new" })
      assert.deepStrictEqual(did, ["post done"])
    })
  )

  it.effect("does nothing when it is denied", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      const script = `await tools.write_file({ file_path: "/n.txt", content: "x" }); return await tools.post({ text: "p" })`
      const { files: after, requests, text } = yield* runAll(script, { did }, () => Effect.succeed(false))
      assert.strictEqual(requests.length, 1)
      assert.match(text, /not approved/)
      assert.deepStrictEqual(Object.keys(after), ["/a.txt", "/b.txt", "/d/c.txt"])
      assert.deepStrictEqual(did, [])
    })
  )

  it.effect("asks about effects behind an unpredictable result as another part", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      const script = `
        await tools.post({ text: "before" })
        const n = await tools.roll({ n: 3 })
        const m = await tools.look({})
        await tools.write_file({ file_path: "/" + n + ".txt", content: n + m })
        return await tools.post({ text: "after " + n })`
      const seen: Array<string> = []
      const {
        files: after,
        requests,
        text
      } = yield* runAll(script, { did }, () =>
        Effect.sync(() => {
          seen.push(did.join(", "))
          return true
        })
      )
      assert.strictEqual(text, "posted after 21")
      assert.strictEqual(requests.length, 2)
      assert.deepStrictEqual(seen, ["", "post before, roll 3, look"])
      assert.deepStrictEqual(did, ["post before", "roll 3", "look", "post after 21"])
      assert.strictEqual(after["/21.txt"], "210")
    })
  )

  it.effect("the rehearsal refuses the calls that rules refuse", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      const script = `
        const told = await tools.post({ text: "forbidden" }).catch((error) => error.message)
        await tools.post({ text: "allowed" })
        return told`
      const { requests, text } = yield* runAll(script, { did }, approve)
      assert.strictEqual(text, "It is forbidden.")
      assert.strictEqual(requests.length, 1)
      assert.notMatch(requests[0]?.description ?? "", /forbidden/)
      assert.deepStrictEqual(did, ["post allowed"])
    })
  )

  it.effect("does nothing when a file that it read has changed since", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      const script = `
        const text = await tools.read_file({ file_path: "/a.txt" })
        await tools.post({ text: text.includes("a") ? "yes" : "no" })
        return 1`
      const { text } = yield* runAll(script, { did }, () =>
        Effect.as(Effect.orDie(Backend.Backend.use((backend) => backend.write("/a.txt", "z"))), true)
      )
      assert.match(text, /Files changed while[^]*\/a\.txt/)
      assert.deepStrictEqual(did, [])
    })
  )

  it.effect("is stopped at an effect that was not shown", () =>
    Effect.gen(function* () {
      const did: Array<string> = []
      // The copy of a thread's clock is the same in both runs; the host's files differ.
      const script = `
        await tools.post({ text: "one" })
        const text = await tools.read_file({ file_path: "/b.txt" })
        if (text.includes("b")) await tools.post({ text: "two" })
        else await tools.post({ text: "three" })
        return 1`
      const { text } = yield* runAll(
        script,
        {
          did,
          onEffect: (what) =>
            what === "post one"
              ? Effect.orDie(
                  Effect.flatMap(Effect.serviceOption(Backend.Backend), (found) =>
                    found._tag === "Some" ? found.value.write("/b.txt", "z") : Effect.void
                  )
                )
              : Effect.void
        },
        approve
      )
      assert.match(text, /not shown/)
      assert.match(text, /three/)
      assert.deepStrictEqual(did, ["post one"])
    })
  )
})

const runChild = (folder: string, killAt: number) =>
  new Promise<void>((resolve) => {
    const child = spawn(
      process.execPath,
      [
        "--conditions=@effect-deepagents/source",
        new URL("children/reviewed.ts", import.meta.url).pathname,
        folder,
        String(killAt)
      ],
      { stdio: "ignore" }
    )
    child.on("exit", () => resolve())
  })

/** The effects of an uninterrupted run. */
const happens = ["look", "ask 1", "post one", "post two", "roll 1", "ask 1", "post 3", "post 4"]

describe("a process that is killed in a script under review", () => {
  for (const at of isFull ? happens.map((_, index) => index + 1) : [4]) {
    it(`does nothing twice and nothing unasked after step ${at}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "code-review-"))
      mkdirSync(`${folder}/files`)
      await runChild(folder, at)
      const before = readFileSync(`${folder}/did`, "utf8").trim().split("\n")
      assert.deepStrictEqual(before, happens.slice(0, at))
      assert.isFalse(existsSync(`${folder}/result`))
      assert.strictEqual(existsSync(`${folder}/files/n.txt`), at > 4)
      await runChild(folder, 0)
      const did = readFileSync(`${folder}/did`, "utf8").trim().split("\n")
      const acts = did.filter((one) => !one.startsWith("ask") && one !== "look")
      assert.deepStrictEqual(
        acts,
        happens.filter((one) => !one.startsWith("ask") && one !== "look")
      )
      // Nothing acts before somebody was asked.
      assert.isBelow(did.indexOf("ask 1"), did.indexOf("post one"))
      assert.isAbove(did.lastIndexOf("ask 1"), did.indexOf("roll 1"))
      const result = readFileSync(`${folder}/result`, "utf8")
      const isCut = [3, 4, 5, 7, 8].includes(at)
      assert.strictEqual(result.split("UnknownOutcome").length - 1, isCut ? 1 : 0, result)
      assert.strictEqual(readFileSync(`${folder}/files/n.txt`, "utf8"), "new")
      rmSync(folder, { recursive: true, force: true })
    })
  }
})
