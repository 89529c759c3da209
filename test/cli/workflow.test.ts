/** Saved workflows in the program as it is published: trust, a run, a kill, a key that is refused, and decisions. */
import { existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"
import { type Blocks, model } from "./model.ts"
import { opener } from "./program.ts"

const program = useProgram()

const survey = `export const meta = {
  name: "survey",
  description: "Reads parts",
  phases: [{ title: "Read" }]
}
phase("Read")
const said = await parallel(args.map((part) => () => agent("Read " + part, { label: "reads " + part })))
return said
`

const putScript = (cwd: string, script = survey, file = ".deepagents/workflows/survey.ts"): void => {
  mkdirSync(join(cwd, file, ".."), { recursive: true })
  writeFileSync(join(cwd, file), script)
}

/** The part that a request asks for. */
const partOf = (body: string): string => /Read (part\d)/.exec(body)?.[1] ?? ""

const world = (reply: (body: string) => Blocks | string | undefined) =>
  Effect.map(model(reply), ({ bodies, env }) => {
    const cwd = realpathSync(program.folder())
    putScript(cwd)
    const home = { ...env, HOME: cwd, XDG_DATA_HOME: join(cwd, "data"), XDG_CONFIG_HOME: join(cwd, "config") }
    const askedParts = () => bodies.map(partOf)
    return {
      asked: askedParts,
      bodies,
      cwd,
      home,
      run: (...args: ReadonlyArray<string>) => program.run(cwd, args, home)
    }
  })

const sayPart = (body: string): Blocks => [{ text: `said ${partOf(body)}` }]

const parts = ["part1", "part2", "part3"]
const all = JSON.stringify(
  parts.map((part) => `said ${part}`),
  null,
  2
)

/** The session that a message names. */
const sessionIn = (text: string): string => /resume (\S+)/.exec(text)?.[1] ?? ""

describe("deepagents workflow", { timeout: 120_000 }, () => {
  it.effect.runIf(isFull)("lists and shows trusted scripts and the user's own; none of them runs", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { bodies, cwd, run } = yield* world(sayPart)
        const untrusted = yield* run("workflow")
        assert.deepEqual([untrusted.code, untrusted.out], [0, ""], untrusted.err)
        assert.match(untrusted.err, /not trusted: \.deepagents\/workflows\/survey\.ts/)
        const refused = yield* run("workflow", "run", "survey", "part1")
        assert.equal(refused.code, 2)
        assert.match(refused.err, /not trusted: deepagents trust/)
        assert.equal((yield* run("trust", "add")).code, 0)
        putScript(
          cwd,
          'export const meta = { name: "own", description: "Of the user" }\n',
          "config/deepagents/workflows/x.ts"
        )
        putScript(cwd, "export const meta = { name: steal() }\n", "config/deepagents/workflows/y.ts")
        const listed = yield* run("workflow", "list")
        assert.deepEqual([listed.code, listed.out], [0, "survey  project  Reads parts\nown     user     Of the user\n"])
        assert.match(listed.err, /y\.ts: its `meta` is no plain object/)
        const shown = yield* run("workflow", "show", "survey")
        assert.include(shown.out, 'phase("Read")')
        putScript(cwd, survey.replace("Reads", "Steals"))
        const changed = yield* run("workflow", "run", "survey", "part1")
        assert.equal(changed.code, 2)
        const wrong = yield* run("workflow", "show", "ow")
        assert.match(wrong.err, /There is no workflow "ow"\. Did you mean/)
        assert.deepEqual(bodies, [])
      })
    )
  )

  it.effect("says why a large file is no workflow, where it lists and where somebody asks for it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, run } = yield* world(sayPart)
        putScript(cwd, "return 1".padEnd(300_000), "config/deepagents/workflows/large.ts")
        putScript(cwd, "return 1".padEnd(1_000_001), ".deepagents/workflows/vast.ts")
        const listed = yield* run("workflow")
        assert.match(listed.err, /large\.ts: it has 300000 bytes, and at most 262144 are read/)
        assert.match(listed.err, /vast\.ts: it has 1000001 bytes, and at most 1000000 are read/)
        const asked = yield* run("workflow", "show", "large")
        assert.equal(asked.code, 2)
        assert.match(asked.err, /large\.ts: it has 300000 bytes/)
      })
    )
  )

  it.effect("runs a script over agents: phases, agents and use on the way, the value at the end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, run } = yield* world(sayPart)
        const done = yield* run("workflow", "run", "survey", ...parts, "--trust")
        assert.deepEqual([done.code, done.out], [0, `${all}\n`], done.err)
        assert.match(done.err, /▸ Read\n/)
        assert.match(done.err, / {2}✓ reads part2 {2}\d+ tokens/)
        assert.match(done.err, /3 of 3 agents done; \d+ tokens/)
        const status = yield* run("workflow", "status")
        assert.match(status.out, /survey {2}completed {2}now {2}3 of 3 agents done/)
        const tree = yield* run("workflow", "status", status.out.split(" ")[0] ?? "")
        assert.include(tree.out, "\n  ▸ Read: 3 of 3 agents done\n")
        assert.equal((yield* run("workflow", "resume", status.out.split(" ")[0] ?? "")).code, 2)
        // The conversations of the folder are others.
        assert.notInclude((yield* run("sessions")).out, "survey")
        const last = yield* run("workflow", "run", "survey", '["part1"]', "--json")
        assert.deepInclude(JSON.parse(last.out.trim().split("\n").at(-1) ?? ""), {
          _tag: "Result",
          exitCode: 0,
          value: ["said part1"]
        })
        // An edited script finds what the earlier one did.
        putScript(cwd, survey.replace("return said", "return said.length"))
        const session = status.out.split(" ")[0] ?? ""
        const edited = yield* run("workflow", "run", "survey", ...parts, "part4", "--session", session, "--trust")
        assert.deepEqual([edited.code, edited.out], [0, "4\n"], edited.err)
        assert.match(edited.err, /4 of 4 agents done, 3 known before/)
      })
    )
  )

  it.live("goes on after kill -9 without asking a finished agent again, also in two processes with two scripts", () =>
    Effect.scoped(
      Effect.gen(function* () {
        let isHanging = true
        const { asked, cwd, home, run } = yield* world((body) =>
          isHanging && partOf(body) === "part3" ? undefined : sayPart(body)
        )
        const { child, ended, err } = program.start(cwd, ["workflow", "run", "survey", ...parts, "--trust"], home)
        const until = Effect.sleep("50 millis").pipe(
          Effect.repeat({ until: () => asked().length === 3 && /part1 [\s\S]*part2 |part2 [\s\S]*part1 /.test(err()) })
        )
        yield* until
        const atWork = yield* run("workflow", "status")
        assert.match(atWork.out, /survey {2}at work/)
        child.kill("SIGKILL")
        yield* Effect.promise(() => ended)
        isHanging = false
        const cut = yield* run("workflow", "status")
        assert.match(cut.out, /survey {2}cut off/)
        putScript(cwd, survey.replace("return said", "return said.length"))
        const session = sessionIn(cut.err)
        const both = yield* Effect.all(
          [
            run("workflow", "resume", session),
            run("workflow", "run", "survey", ...parts, "--session", session, "--trust")
          ],
          { concurrency: 2 }
        )
        // The slower one is refused, or finds all that the faster one did.
        for (const { code, err, out } of both) {
          if (code !== 0) assert.match(err, /Another process is at work on session|It is completed/)
          else assert.include([`${all}\n`, "3\n"], out, err)
        }
        assert.isTrue(both.some(({ code }) => code === 0))
        assert.deepEqual(asked().toSorted(), ["part1", "part2", "part3", "part3"])
      })
    )
  )

  it.effect.runIf(isFull)(
    "is unfinished if the provider refuses its key, and never completed; it goes on with a right key",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          let isRefusing = true
          const { asked, run } = yield* world((body) =>
            isRefusing && partOf(body) !== "part1" ? "no more for this key" : sayPart(body)
          )
          const stopped = yield* run("workflow", "run", "survey", ...parts, "--trust")
          assert.deepEqual([stopped.code, stopped.out], [10, ""], stopped.err)
          assert.match(stopped.err, /The workflow is not finished/)
          assert.match(stopped.err, /Agents: \d finished, \d in flight/)
          const status = yield* run("workflow", "status")
          assert.match(status.out, /survey {2}unfinished/)
          isRefusing = false
          const before = asked().filter((part) => part === "part1").length
          const done = yield* run("workflow", "resume", sessionIn(stopped.err))
          assert.deepEqual([done.code, done.out], [0, `${all}\n`], done.err)
          assert.isAtMost(asked().filter((part) => part === "part1").length, Math.max(1, before))
        })
      )
  )

  it.effect.runIf(isFull)("stops at its limit of agents, and goes on with a higher one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { asked, run } = yield* world(sayPart)
        const stopped = yield* run("workflow", "run", "survey", ...parts, "--agents", "2", "--trust")
        assert.equal(stopped.code, 10, stopped.err)
        assert.match(stopped.err, /--agents N/)
        const done = yield* run("workflow", "resume", sessionIn(stopped.err), "--agents", "3")
        assert.deepEqual([done.code, done.out], [0, `${all}\n`], done.err)
        assert.deepEqual(asked().toSorted(), parts)
      })
    )
  )

  it.effect.runIf(isFull)("waits in the inbox for its agents' calls, and a decision goes on with it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, run } = yield* world((body) =>
          partOf(body) === "part2" && !body.includes("tool_result")
            ? [{ call: "write_file", id: "toolu_w", input: { file_path: "b.txt", content: "two\n" } }]
            : sayPart(body)
        )
        const waits = yield* run("workflow", "run", "survey", ...parts, "--trust")
        assert.deepEqual([waits.code, waits.out], [6, ""], waits.err)
        assert.match(waits.err, /2 of 3 agents done, 1 waiting|The workflow waits for decisions/)
        assert.isFalse(existsSync(join(cwd, "b.txt")))
        const [request] = JSON.parse((yield* run("inbox", "--json")).out)
        const done = yield* run("inbox", "approve", request.id)
        assert.deepEqual([done.code, done.out], [0, `${all}\n`], done.err)
        assert.isTrue(existsSync(join(cwd, "b.txt")))
      })
    )
  )

  it.effect.runIf(isFull)("asks about each part before its agents begin, where scripts are reviewed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { asked, cwd, run } = yield* world(sayPart)
        putScript(cwd, JSON.stringify({ scripts: "review" }), "config/deepagents/config.json")
        const waits = yield* run("workflow", "run", "survey", ...parts, "--trust")
        assert.deepEqual([waits.code, waits.out], [6, ""], waits.err)
        assert.deepEqual(asked(), [])
        const [request] = JSON.parse((yield* run("inbox", "--json")).out)
        assert.match(JSON.stringify(request), /these 3 things[^]*Read part1[^]*Read part3/)
        const done = yield* run("inbox", "approve", request.id)
        assert.deepEqual([done.code, done.out], [0, `${all}\n`], done.err)
        assert.deepEqual(asked().toSorted(), parts)
      })
    )
  )
})

describe("/workflow", { timeout: 120_000 }, () => {
  const start = opener()
  const wait = (work: Promise<void>) => Effect.promise(() => work)

  it.live("works in the background with its tree, ends with the program, and goes on with the session", () =>
    Effect.scoped(
      Effect.gen(function* () {
        let isHanging = true
        const { asked, cwd, home } = yield* world((body) =>
          isHanging && partOf(body) === "part3" ? undefined : sayPart(body)
        )
        const open = (...args: ReadonlyArray<string>) =>
          start([program.bin, ...args, "--cwd", cwd, "--trust"], { env: home, columns: 110, rows: 40 })
        const chat = open()
        yield* wait(chat.until("/ commands"))
        chat.type(`/workflow run survey ${parts.join(" ")}\r`)
        yield* wait(chat.until("workflow survey works in the background"))
        yield* Effect.sleep("50 millis").pipe(Effect.repeat({ until: () => asked().length === 3 }))
        // The answers of two agents are on their way.
        yield* Effect.repeat(
          Effect.andThen(
            Effect.sync(() => chat.type("/workflow\r")),
            Effect.sleep("500 millis")
          ),
          { until: () => chat.text().includes("▸ Read: 2 of 3 agents done, 1 at work") }
        )
        yield* wait(chat.until("survey (project): Reads parts"))
        yield* wait(chat.until("… reads part3"))
        chat.type("/ps\r")
        yield* wait(chat.until((text) => /workflow: \{"name":"survey".*: running, /.test(text)))
        chat.kill("SIGKILL")
        yield* Effect.promise(() => chat.ended)
        isHanging = false
        const again = open("resume")
        yield* wait(again.until("workflow survey goes on in the background"))
        yield* wait(again.until((text) => /workflow: survey: completed\. .*said part3/.test(text)))
        assert.deepEqual(asked().toSorted(), ["part1", "part2", "part3", "part3"])
        again.type("/workflow resume nothing\r")
        yield* wait(again.until('There is no session "nothing"'))
      })
    )
  )

  it.live.runIf(isFull)("takes back the files that its agents changed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, home, run } = yield* world((body) =>
          partOf(body) === "part2" && !body.includes("tool_result")
            ? [{ call: "write_file", id: "toolu_w", input: { file_path: "b.txt", content: "two\n" } }]
            : sayPart(body)
        )
        const chat = start([program.bin, "--cwd", cwd, "--trust", "--yolo"], { env: home, columns: 110, rows: 40 })
        yield* wait(chat.until("/ commands"))
        chat.type("/workflow run survey part2\r")
        yield* wait(chat.until((text) => /workflow: .*survey.*: completed/.test(text)))
        assert.isTrue(existsSync(join(cwd, "b.txt")))
        const id = (yield* run("workflow", "status")).out.split(" ")[0] ?? ""
        chat.type(`/workflow undo ${id}\r`)
        yield* wait(chat.until("forget the work of its agents and these files?"))
        yield* Effect.sleep("1200 millis")
        chat.type("\x1b[B\r")
        yield* wait(chat.until("taken back"))
        assert.isFalse(existsSync(join(cwd, "b.txt")))
      })
    )
  )

  it.live.runIf(isFull)(
    "is a tool of the agent, which is told of its end; a script of the agent asks the person first",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const ask = (id: string, input: object): Blocks => [{ call: "workflow", id, input }]
          const { asked, bodies, cwd, home } = yield* world((body) => {
            if (partOf(body) !== "") return sayPart(body)
            if (body.includes("Second")) {
              return body.includes("toolu_2")
                ? [{ text: "Begun." }]
                : ask("toolu_2", { script: 'return await agent("Read part9")' })
            }
            return body.includes("toolu_1") ? [{ text: "Going." }] : ask("toolu_1", { name: "survey", args: ["part1"] })
          })
          const chat = start([program.bin, "--cwd", cwd, "--trust"], {
            env: { ...home, DEEPAGENTS_SCRIPTS: "true" },
            columns: 110,
            rows: 40
          })
          yield* wait(chat.until("/ commands"))
          chat.type("First\r")
          yield* wait(chat.until("Going."))
          yield* wait(chat.until((text) => /in the background, workflow: .*survey.*: completed/.test(text)))
          assert.deepEqual(
            asked().filter((part) => part !== ""),
            ["part1"]
          )
          chat.type("Second\r")
          yield* wait(chat.until("Runs this program over agents"))
          assert.include(bodies.find((body) => body.includes("Second")) ?? "", "task-1 (workflow) is completed")
          assert.isFalse(asked().includes("part9"))
          // A dialog takes keys once nobody has typed for a moment.
          yield* Effect.sleep("1200 millis")
          chat.type("y")
          yield* Effect.sleep("50 millis").pipe(Effect.repeat({ until: () => asked().includes("part9") }))
        })
      )
  )
})
