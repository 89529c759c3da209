/** Input of `deepagents run`, and the codes that it ends with, against a model that is spoken to over HTTP. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const world = Effect.fnUntraced(function* (...replies: ReadonlyArray<Reply>) {
  const { requests, url } = yield* serve(...replies)
  const cwd = program.folder()
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: join(cwd, "data") }
  return { cwd, requests, run: (args: ReadonlyArray<string>, stdin = "") => program.run(cwd, args, env, stdin) }
})

const looking = stream(answer([{ call: "ls", id: "toolu_1", input: {} }]))
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const licence = JSON.stringify({
  type: "object",
  properties: { licence: { type: "string" } },
  required: ["licence"],
  additionalProperties: false
})

describe("deepagents run", { timeout: 120_000 }, () => {
  it.effect("sends images, files and piped text along with the words", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, requests, run } = yield* world(say("A dot."))
        writeFileSync(join(cwd, "shot.png"), Buffer.from(png, "base64"))
        writeFileSync(join(cwd, "notes.txt"), "kept here")
        const args = ["run", "What", "is", "it?", "--image", join(cwd, "shot.png"), "-f", join(cwd, "notes.txt")]
        // A pipe that nobody asked for may stay open for ever, so it is asked for.
        const done = yield* run([...args, "-"], "piped in")
        assert.deepEqual([done.code, done.out], [0, "A dot.\n"], done.err)
        const sent = JSON.stringify(requests[0]?.body.messages)
        for (const part of ["What is it?", png, "image/png", "kept here", "piped in"]) assert.include(sent, part)
      })
    )
  )

  it.effect.runIf(isFull)(
    "prints an answer that fits a schema as JSON; ends with 9 where none does, with 2 for a wrong schema",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, run } = yield* world(
            say('{"licence":"MIT"}'),
            ...Array.from({ length: 9 }, () => say("MIT, I think"))
          )
          const file = join(cwd, "licence.json")
          const args = ["run", "Which licence?", "--output-schema", file]
          writeFileSync(file, licence)
          const fits = yield* run(args)
          assert.deepEqual([fits.code, fits.out], [0, '{"licence":"MIT"}\n'], fits.err)
          const misfit = yield* run(args)
          assert.deepEqual([misfit.code, misfit.out], [9, ""], misfit.err)
          writeFileSync(file, "{")
          const wrong = yield* run(args)
          assert.equal(wrong.code, 2)
          assert.match(wrong.err, /licence\.json can't be used/)
          const missing = yield* run(["run", "hi", "--output-schema", "none.json"])
          assert.equal(missing.code, 2)
          assert.match(missing.err, /none\.json/)
        })
      )
  )

  it.effect("ends with 5 at a budget, 7 at a refusal, 8 at a cut answer, and prints the partial answer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const endOf = Effect.fnUntraced(function* (args: ReadonlyArray<string>, ...replies: ReadonlyArray<Reply>) {
          const { run } = yield* world(...replies)
          const { code, err, out } = yield* run(["run", "hi", ...args])
          return { code, err, out: out.trim() }
        })
        const stopped = (stop: string) => stream(answer([{ text: "So far" }], { stop }))
        const tokens = yield* endOf(["--tokens", "10"], looking, say("So far"))
        assert.deepInclude(tokens, { code: 5, out: "So far" }, tokens.err)
        assert.match(tokens.err, /--tokens/)
        const refused = yield* endOf([], stopped("refusal"))
        assert.equal(refused.code, 7, refused.err)
        const cut = yield* endOf([], stopped("max_tokens"))
        assert.deepInclude(cut, { code: 8, out: "So far" }, cut.err)
        if (!isFull) return
        const cost = yield* endOf(["--budget", "0.000001"], looking, say("So far"))
        assert.deepInclude(cost, { code: 5, out: "So far" }, cost.err)
        const negative = yield* endOf(["--budget", "-1"])
        assert.equal(negative.code, 2, negative.err)
      })
    )
  )
})
