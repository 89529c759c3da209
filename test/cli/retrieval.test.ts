/** `deepagents index`, and an agent that searches the index. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
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
  const data = program.folder()
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: data }
  return { cwd, data, requests, run: (args: ReadonlyArray<string>) => program.run(cwd, args, env, "") }
})

const searching = stream(answer([{ call: "rag_search", id: "toolu_1", input: { query: "days of leave" } }]))

describe("deepagents index", { timeout: 120_000 }, () => {
  it.effect("indexes a folder once, follows changes, and gives the agent its tools", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, data, requests, run } = yield* world(
          say("Nothing."),
          searching,
          say("Thirty [1]."),
          say("Hi."),
          say("Hi.")
        )
        mkdirSync(join(cwd, "docs"))
        writeFileSync(join(cwd, "docs/leave.md"), "# Leave\nThere are thirty days of leave.")
        writeFileSync(join(cwd, "docs/pay.md"), "# Pay\nWages are paid monthly.")
        writeFileSync(join(cwd, "docs/odd.bin"), "\0\0")

        yield* run(["run", "hi"])
        assert.notInclude(JSON.stringify(requests[0]?.body.tools), "rag_search")

        const first = yield* run(["index", "docs"])
        assert.deepEqual(
          [first.code, first.out],
          [0, "2 indexed (2 passages), 0 unchanged, 0 removed, 1 left out\n"],
          first.err
        )
        assert.match(first.err, /odd\.bin: it is neither text nor a known format/)
        rmSync(join(cwd, "docs/pay.md"))
        rmSync(join(cwd, "docs/odd.bin"))
        const second = yield* run(["index", "docs", "--json"])
        assert.deepInclude(JSON.parse(second.out), { indexed: 0, unchanged: 1, removed: 1, failed: 0 })
        const listed = yield* run(["index", "--list"])
        assert.match(listed.out, /docs: 1 documents, 1 passages/)

        const asked = yield* run(["run", "How many days of leave?"])
        assert.deepEqual([asked.code, asked.out], [0, "Thirty [1].\n"], asked.err)
        assert.include(JSON.stringify(requests.at(-1)?.body.messages), "> There are thirty days of leave.")

        assert.notInclude(JSON.stringify(requests.at(-1)?.body.tools), "code_search")
        if (!isFull) return
        writeFileSync(join(cwd, "leave.ts"), "/** Counts days. */\nexport const countLeave = () => 30\n")
        mkdirSync(join(cwd, "many"))
        for (let at = 0; at < 500; at++) writeFileSync(join(cwd, `many/${at}.md`), `# Page ${at}`)
        const whole = yield* run(["index"])
        assert.equal(whole.code, 0, whole.err)
        assert.include(whole.err, `${"█".repeat(20)} 500 of 502\n`)
        // The program has no grammars: who wants them installs them.
        assert.match(whole.err, /502\n$|code is split like other texts: .*npm install web-tree-sitter\n/)
        yield* run(["run", "hi"])
        assert.include(JSON.stringify(requests.at(-1)?.body.tools), "code_search")

        const index = join(data, "deepagents/index.db")
        writeFileSync(`${index}.kept`, readFileSync(index))
        for (const end of ["", "-wal", "-shm"]) rmSync(index + end, { force: true })
        writeFileSync(index, "This is no database. ".repeat(500))
        const broken = yield* run(["index", "--list"])
        assert.equal(broken.code, 1, broken.out)
        assert.match(broken.err, /not a database/)
        const without = yield* run(["run", "hi"])
        assert.match(without.err, /not a database.*its tools are left out/)
        writeFileSync(index, readFileSync(`${index}.kept`))

        const dropped = yield* run(["index", "--drop"])
        assert.equal(dropped.code, 0, dropped.err)
        assert.match((yield* run(["index", "--list"])).out, /Nothing is indexed here/)
        const missing = yield* run(["index", "none"])
        assert.equal(missing.code, 2)
        assert.match(missing.err, /There is no folder/)
      })
    )
  )
})
