/** Requests that wait over all sessions, decided on from the command line. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const write = (path: string) => ({ call: "write_file", id: "toolu_1", input: { file_path: path, content: "x" } })

const envOf = (cwd: string, url: string) => ({
  XDG_DATA_HOME: join(cwd, "data"),
  XDG_CONFIG_HOME: join(cwd, "config"),
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: "sk-ant-test"
})

describe("deepagents inbox", { concurrent: true, timeout: 60_000 }, () => {
  it.effect(
    "lists pending requests by the path of their agents, and continues an approved one from another folder",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { folder, run } = program
          const cwd = folder()
          const task = {
            call: "task",
            id: "toolu_0",
            input: { description: "Write it", subagent_type: "general-purpose" }
          }
          const { url } = yield* serve(
            stream(answer([task])),
            stream(answer([write("a.txt")])),
            say("Wrote it."),
            say("All is done.")
          )
          const env = envOf(cwd, url)
          assert.equal((yield* run(cwd, ["inbox"], env)).out, "Nothing waits.\n")
          const waits = yield* run(cwd, ["run", "Write it"], env)
          assert.equal(waits.code, 6, waits.err)
          assert.match(waits.err, /deepagents inbox approve/)
          const elsewhere = folder()
          const [listed, asJson] = yield* Effect.all(
            [run(elsewhere, ["inbox"], env), run(elsewhere, ["inbox", "--json"], env)],
            { concurrency: 2 }
          )
          assert.match(listed.out, /deep › general-purpose +write_file .*a\.txt/)
          const [item] = JSON.parse(asJson.out)
          assert.deepEqual(item.request.path, ["deep", "general-purpose"])
          const short = item.id.slice(0, 8)
          assert.include(listed.out, short)
          const shown = yield* run(elsewhere, ["inbox", "show", short], env)
          assert.match(shown.out, /choices +approve/)
          const wrong = `${short.slice(0, 7)}${short.endsWith("z") ? "y" : "z"}`
          const misspelt = yield* run(elsewhere, ["inbox", "approve", wrong], env)
          assert.equal(misspelt.code, 2)
          assert.include(misspelt.err, `Did you mean "${short}"`)
          const done = yield* run(elsewhere, ["inbox", "approve", short], env)
          assert.equal(done.code, 0, done.err)
          assert.equal(done.out, "All is done.\n")
          assert.equal(readFileSync(join(cwd, "a.txt"), "utf8"), "x")
          const again = yield* run(elsewhere, ["inbox", "approve", short], env)
          assert.equal(again.code, 2, again.err)
        })
      )
  )

  it.effect.runIf(isFull)("tells the model the reason of a refusal, and ends with 6 again if the next call waits", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { folder, run } = program
        const cwd = folder()
        const { requests, url } = yield* serve(
          stream(answer([write("a.txt")])),
          stream(answer([{ ...write("b.txt"), id: "toolu_2" }])),
          say("Written.")
        )
        const env = envOf(cwd, url)
        assert.equal((yield* run(cwd, ["run", "Write it"], env)).code, 6)
        const [first] = JSON.parse((yield* run(cwd, ["inbox", "--json"], env)).out)
        const refused = yield* run(cwd, ["inbox", "reject", first.id, "to", "b.txt,", "please"], env)
        assert.equal(refused.code, 6, refused.err)
        assert.include(JSON.stringify(requests.at(-1)?.body), "to b.txt, please")
        const [second] = JSON.parse((yield* run(cwd, ["inbox", "--json"], env)).out)
        const done = yield* run(cwd, ["inbox", "approve", second.id, "--json"], env)
        const last = JSON.parse(done.out.trim().split("\n").at(-1) ?? "")
        assert.deepEqual([done.code, last._tag, last.text], [0, "Result", "Written."])
        assert.deepEqual([existsSync(join(cwd, "a.txt")), existsSync(join(cwd, "b.txt"))], [false, true])
      })
    )
  )

  it.effect.runIf(isFull)(
    "answers a question by its words, several by JSON; an invalid answer is reported, and the question stays",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { folder, run } = program
          const cwd = folder()
          const ask = (id: string, ...names: ReadonlyArray<string>) => ({
            call: "ask_user",
            id,
            input: { questions: names.map((name) => ({ id: name, label: `Which ${name}?`, kind: "text" })) }
          })
          const { requests, url } = yield* serve(
            stream(answer([ask("toolu_1", "color")])),
            stream(answer([ask("toolu_2", "color", "size")])),
            say("Blue, and large.")
          )
          const env = envOf(cwd, url)
          assert.equal((yield* run(cwd, ["run", "Ask me"], env)).code, 6)
          const [first] = JSON.parse((yield* run(cwd, ["inbox", "--json"], env)).out)
          assert.equal(first.kind, "question")
          assert.equal((yield* run(cwd, ["inbox", "answer", first.id, "light", "blue"], env)).code, 6)
          assert.include(JSON.stringify(requests.at(-1)?.body), "light blue")
          const [second] = JSON.parse((yield* run(cwd, ["inbox", "--json"], env)).out)
          const words = yield* run(cwd, ["inbox", "answer", second.id, "blue"], env)
          assert.equal(words.code, 2)
          assert.match(words.err, /size: Which size\?/)
          const misfit = yield* run(cwd, ["inbox", "answer", second.id, '{"color": "blue"}'], env)
          assert.equal(misfit.code, 2, misfit.err)
          const done = yield* run(cwd, ["inbox", "answer", second.id, '{"color": "blue", "size": "L"}'], env)
          assert.equal(done.code, 0, done.err)
          assert.equal(done.out, "Blue, and large.\n")
        })
      )
  )
})
