/** What the demo says about a folder, against the folder. */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { say, serve } from "../models/servers/anthropic.ts"
import { isFull, scaled } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const report = "deepagents-demo.md"

/** The folder of a person: hidden files, an ignored folder, instructions, and a folder of its own of the same name. */
const makeProject = (count: number): string => {
  const cwd = program.folder()
  mkdirSync(join(cwd, "src"))
  mkdirSync(join(cwd, "built"))
  writeFileSync(join(cwd, ".gitignore"), "built\n")
  writeFileSync(join(cwd, "built/a.ts"), "")
  writeFileSync(join(cwd, "AGENTS.md"), "Be brief.")
  writeFileSync(join(cwd, "data.csv"), "a,b\n")
  for (let index = 0; index < count; index++) writeFileSync(join(cwd, `src/file-${index}.ts`), "")
  return cwd
}

const events = (out: string) =>
  out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** All that the agent itself said, and the results of its calls. */
const answerIn = (out: string): string =>
  events(out)
    .flatMap(({ _tag, message, path }) =>
      _tag === "MessageAppended" && path.length === 1
        ? message.content.map(({ text = "" }: { readonly text?: string }) => text)
        : []
    )
    .join("\n")

const countsOf = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^\| ([A-Z]\S*(?: \S+)?) \| `(.+)` \| (.+) \|$/gm)].map(([, , glob = "", count = ""]) => [
      glob,
      count
    ])
  )

const run = (cwd: string, ...args: ReadonlyArray<string>) =>
  program.run(cwd, ["run", "What is in this folder?", "--demo", "--json", ...args], {
    XDG_DATA_HOME: join(program.folder(), "data")
  })

describe("the demo", { concurrent: true, timeout: 60_000 }, () => {
  it.effect("tells true numbers of the folder, and writes its report to the named file", () =>
    Effect.gen(function* () {
      const files = scaled(1_200)
      const cwd = makeProject(files)
      const entries = readdirSync(cwd).length
      const { code, err, out } = yield* run(cwd, "--yolo")
      assert.equal(code, 0, err)
      assert.match(err, /^Left out, as it is not trusted: new instructions AGENTS\.md [^\n]*\n$/)
      const text = answerIn(out)
      assert.include(text, `Entries at the top of this folder: ${entries}.`)
      const counts = { "**/*": `${files + 3}`, "**/*.md": "1", "**/*.ts": `${files}` }
      const { text: last } = events(out).at(-1)
      assert.deepEqual(countsOf(last), counts)
      assert.include(last, `The report is in \`./${report}\`.`)
      assert.deepEqual(countsOf(readFileSync(join(cwd, report), "utf8")), counts)
      assert.equal(readdirSync(cwd).length, entries + 1)
      if (!isFull) return
      const again = answerIn((yield* run(cwd, "--yolo")).out)
      assert.include(again, `The report is in \`./${report}\`.`)
      assert.deepEqual(countsOf(again), { "**/*": `${files + 4}`, "**/*.md": "2", "**/*.ts": `${files}` })
    })
  )

  it.effect.runIf(isFull)('says "at least" if a search ends early', () =>
    Effect.gen(function* () {
      const cwd = makeProject(10_050)
      const { out } = yield* run(cwd, "--yolo")
      assert.deepEqual(countsOf(answerIn(out)), {
        "**/*": "at least 10000",
        "**/*.md": "1",
        "**/*.ts": "at least 10000"
      })
    })
  )

  it.effect("changes nothing without a person, says so, and shows a program that runs and prints", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = makeProject(2)
        const { code, out } = yield* run(cwd)
        assert.equal(code, 0)
        const { text } = events(out).at(-1)
        assert.match(text, /^The report was not written to .*, since nobody allowed it\./)
        assert.deepEqual(countsOf(text), { "**/*": "5", "**/*.md": "1", "**/*.ts": "2" })
        assert.isFalse(existsSync(join(cwd, report)))
        const [, source = ""] = /```ts\n([^]*?)```/.exec(text) ?? []
        writeFileSync(join(cwd, "ask.mts"), source)
        mkdirSync(join(cwd, "node_modules"))
        for (const name of ["effect", "@anthropic-ai"]) {
          symlinkSync(resolve("node_modules", name), join(cwd, "node_modules", name))
        }
        symlinkSync(resolve("."), join(cwd, "node_modules/effect-deepagents"))
        const { url } = yield* serve(say("A program and its notes."))
        const env = { PATH: process.env["PATH"], ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: url }
        const printed = yield* Effect.promise(
          () =>
            new Promise<string>((done) => {
              const args = ["--conditions=@effect-deepagents/source", "ask.mts"]
              execFile(process.execPath, args, { cwd, env }, (error, stdout, stderr) =>
                done(error === null ? stdout : stderr)
              )
            })
        )
        assert.equal(printed, "A program and its notes.\n")
      })
    )
  )
})
