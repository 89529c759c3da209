/** The program itself in a real pseudo-terminal. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, error, json, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { build } from "./built.ts"
import { type Program, start } from "./program.ts"

let built: ReturnType<typeof build>

beforeAll(() => {
  built = build()
})
afterAll(() => built.remove())

/** The program in a folder of its own, with the home of a new user. */
const openProgram = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  env: { readonly [name: string]: string } = {},
  cwd = built.folder()
) {
  const program = yield* Effect.acquireRelease(
    Effect.sync(() =>
      start([built.bin, "-C", cwd, ...args], {
        env: {
          HOME: cwd,
          XDG_CONFIG_HOME: join(cwd, "config"),
          XDG_DATA_HOME: join(cwd, "data"),
          OLLAMA_BASE_URL: "http://127.0.0.1:1",
          PAGER: "cat",
          ...env
        }
      })
    ),
    (one) =>
      Effect.promise(() => {
        one.kill("SIGKILL")
        return one.ended
      })
  )
  return { ...program, cwd }
})

const until = (program: Program, wanted: string | ((text: string) => boolean)) =>
  Effect.promise(() => program.until(wanted))

const ready = "/ commands"

describe("the program in a terminal", { timeout: 120_000 }, () => {
  it.live.runIf(isFull)("has the status line of the person, and that of a project once it is trusted as it is", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = built.folder()
        const home = built.folder()
        const putFile = (folder: string, file: string, value: unknown): void => {
          mkdirSync(join(folder, file, ".."), { recursive: true })
          writeFileSync(join(folder, file), JSON.stringify(value))
        }
        const env = { HOME: home, ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }
        const last = (program: Program, wanted: string) =>
          Effect.promise(() => program.draft((text) => text.includes(`\n${wanted} · / commands`)))
        const command = (text: string) => ({ statusLine: { type: "command", command: text } })
        putFile(home, ".claude/settings.json", command("printf '\\033[31mhome\\033[0m\\nmore'"))
        const first = yield* openProgram([], env, cwd)
        yield* last(first, "home")
        const facts = `node -e 'process.stdin.on("data", (data) => { const all = JSON.parse(data); console.log("of", all.model.id, all.cwd === process.cwd(), all.mode) })'`
        putFile(cwd, ".claude/settings.json", command(facts))
        const asked = yield* openProgram([], env, cwd)
        yield* until(asked, "yes, as it is now")
        assert.include(asked.text(), "status line")
        asked.type("\u001b[B\r")
        yield* last(asked, "of claude-sonnet-5-5 true ask")
        asked.type("\u001b[Z")
        yield* last(asked, "of claude-sonnet-5-5 true auto-edit")
        putFile(cwd, ".claude/settings.json", command("echo other"))
        const changed = yield* openProgram([], env, cwd)
        yield* until(changed, "yes, as it is now")
        changed.type("\r")
        yield* last(changed, "home")
        putFile(cwd, "config/deepagents/config.json", { statusLine: ["model", "mode", "branch"] })
        const own = yield* openProgram([], env, cwd)
        yield* until(own, "yes, as it is now")
        own.type("\r")
        yield* last(own, "anthropic:claude-sonnet-5-5 · ask")
        putFile(cwd, "config/deepagents/config.json", { statusLine: { command: "exit 3" } })
        const broken = yield* openProgram([], env, cwd)
        yield* until(broken, "yes, as it is now")
        broken.type("\r")
        yield* until(broken, "The status line can't be made: its command ended with exit code 3")
        yield* last(broken, "ask · deep · anthropic:claude-sonnet-5-5")
        putFile(cwd, ".deepagents/config.json", { statusLine: ["model"] })
        const refused = built.start(cwd, ["run", "hi", "--trust"], env)
        const { code, err } = yield* Effect.promise(() => refused.ended)
        assert.equal(code, 2)
        assert.include(err, '"statusLine" can\'t be set by a project')
      })
    )
  )

  it.live("asks for provider and key once, shows and keeps nothing of it in the clear; a wrong key is told", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { requests, url } = yield* serve(
          { ...json(200, { data: [{ id: "claude-a" }] }), checked: false },
          say("Hello."),
          error(401, "authentication_error", "invalid x-api-key")
        )
        const env = { ANTHROPIC_BASE_URL: url }
        const first = yield* openProgram([], env)
        yield* until(first, "Which model shall answer?")
        first.type("\r")
        yield* until(first, "Key of anthropic")
        first.type("sk-ant-typed")
        yield* Effect.sleep("300 millis")
        first.type("\r")
        yield* until(first, ready)
        first.type("hi\r")
        yield* until(first, "Hello.")
        assert.include(JSON.stringify(requests.map(({ headers }) => headers)), "sk-ant-typed")
        first.type("\u0004")
        assert.equal(yield* Effect.promise(() => first.ended), 0)
        assert.notInclude(first.raw(), "sk-ant-typed")
        const second = yield* openProgram([], env, first.cwd)
        yield* until(second, ready)
        assert.notInclude(second.text(), "Which model")
        second.type("hi\r")
        yield* until(second, (text) => /check\s+the\s+key/.test(text))
      })
    )
  )

  it.live("says once that a model has no key, without a time, and keeps the message", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const program = yield* openProgram([], {
          ANTHROPIC_API_KEY: "sk-ant-test",
          ANTHROPIC_BASE_URL: "http://127.0.0.1:1"
        })
        yield* until(program, ready)
        program.type("/model openai:gpt-5.4\r")
        yield* until(program, "── model: openai:gpt-5.4")
        program.type("say it\r")
        yield* until(program, "failed · 0 ms")
        yield* Effect.promise(() => program.draft((text) => text.includes("› say it")))
        assert.strictEqual(program.text().split("there is no key of openai").length, 2)
      })
    )
  )

  it.live("leaves by Ctrl-C at the first question, with 130", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const program = yield* openProgram([])
        yield* until(program, "Which model shall answer?")
        program.type("\u0003")
        assert.equal(yield* Effect.promise(() => program.ended), 130)
        yield* until(program, "Nothing was set up.")
      })
    )
  )

  it.live.runIf(isFull)(
    "keeps its colours, takes keys of the settings, tells Shift+Enter, and shows output of a command as it comes",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = built.folder()
          const file = join(cwd, "config/deepagents/config.json")
          mkdirSync(join(cwd, "config/deepagents"), { recursive: true })
          writeFileSync(file, JSON.stringify({ tokens: 1_000_000, keys: { mode: ["ctrl+y"] } }))
          const program = yield* openProgram(["--demo"], {}, cwd)
          yield* until(program, ready)
          program.type("/theme mono\r")
          yield* until(program, "colours: mono")
          assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), {
            tokens: 1_000_000,
            keys: { mode: ["ctrl+y"] },
            theme: "mono"
          })
          program.type("\u001b[Z")
          program.type("\u0019")
          yield* until(program, "auto-edit · deep")
          // The terminal does not know kitty's protocol, so it was asked for the older one.
          assert.include(program.raw(), "\u001b[>4;2m")
          program.type("!echo one; sleep 2; echo two\r")
          yield* until(program, (text) => /⋯ !echo one; sleep 2; echo two\n +one|⋯ !echo[^\n]*\none/.test(text))
          yield* until(program, (text) => /one\ntwo/.test(text))
          program.type("!echo three; sleep 60\r")
          yield* until(program, (text) => /\n\s*three/.test(text))
          program.type("\u0003")
          yield* until(program, (text) => /three\n\s*interrupted/.test(text))
          program.type("first\u001b[27;2;13~\u001b[27;2;83~econd\r")
          yield* until(program, (text) => /first\n\s*Second/.test(text))
          program.type("\u0004")
          writeFileSync(file, JSON.stringify({ keys: { plan: ["hyper+p"] } }))
          const wrong = yield* built.run(cwd, ["config"], { XDG_CONFIG_HOME: join(cwd, "config") })
          assert.equal(wrong.code, 2)
          assert.match(wrong.err, /keys\.plan.*hyper\+p.*ctrl\+p/)
        })
      )
  )

  it.live("answers one message after the other, also such as came at once, and knows each of its commands", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = built.folder()
        writeFileSync(join(cwd, "notes.txt"), "noted\n")
        const program = yield* openProgram(["--demo", "--yolo"], {}, cwd)
        yield* until(program, ready)
        program.type("one\rtwo\r")
        yield* until(program, (text) => /The report is in[^]*You said: “two”/.test(text))
        yield* until(program, ready)
        assert.include(program.text(), "› one")
        program.type("three\r")
        yield* until(program, "You said: “three”")
        yield* until(program, ready)
        const escape = "\u001b"
        const commands: ReadonlyArray<readonly [line: string, wanted: string | RegExp, after?: string]> = [
          ["/hepl", 'There is no command /hepl. Did you mean "/help"?'],
          ["/help", "go on in a copy of the conversation"],
          ["/keys", "search your earlier messages"],
          ["/agent", "Answers one question by reading much", escape],
          ["/agent nobody", 'There is no agent "nobody"'],
          ["/agents", "2. general-purpose"],
          ["/agents x", 'There is no sub-agent "x"; there are 1 to 3.'],
          ["/model", "the model:", escape],
          ["/provider", "No provider has a key"],
          ["/tools", /• git_status/],
          ["/mcp", "There is no server"],
          ["/skills", /test-writing/],
          ["/features", /scripts off — default/],
          ["/memory", /agent\.md\s+is\s+not\s+there\./],
          ["/todos", "[x] Look around"],
          ["/files", /^ *notes\.txt$/m],
          ["/files nowhere", "no such file or directory"],
          ["/read notes.txt", /^noted$/m],
          ["/read ", "Say which file"],
          ["/diff", /diff deepagents-demo\.md\n[^]*\+# What is in this folder/],
          ["/context", /It is compacted in about [^]*results of tools/],
          ["/cost", /tokens in \([^]* in all/],
          ["/budget", "no limit in money"],
          ["/permissions", "Nothing is approved for good"],
          ["/permissions drop 7", "There is no approval 7."],
          ["/approve", "The mode is yolo"],
          ["/approve always", 'There is no mode "always"'],
          ["/approve ask", "── mode: ask"],
          ["/theme", "the colours:", escape],
          ["/status", "agent deep, model demo:script"],
          ["/save here", 'is named "here"'],
          ["/copy", /copied 1?\d\d characters/],
          ["/copy 9", "There is nothing like that to copy."],
          ["/export out.md", /written to \S*\/out\.md/],
          ["/export out.md", "out.md is there already"],
          ["/history", /## You\n\nthree/],
          ["/rewind abc", "There is no turn abc; there are 3."],
          ["/rewind 3", "back to before: three", "\u0003"],
          ["/tree", /○ three/, escape],
          ["/fork", "a copy of the conversation"],
          ["/undo", "take back the words?", escape],
          ["/sessions nothing", 'There is no session "nothing"'],
          ["/sessions", "go over to …", escape],
          ["/compact", "The files of the folder were counted."],
          ["/clear", "a new conversation"],
          ["/todos", "There is no plan."],
          ["/context", "Nothing was sent to the model yet."]
        ]
        // Later commands see what the one before the last ones clears.
        const typed = isFull ? commands : commands.slice(0, 44).filter((_, index) => index % 4 === 1)
        for (const [line, wanted, after] of typed) {
          // It may have been there before: it has to be there once more.
          const count = (text: string) => text.split(wanted).length
          const before = count(program.text())
          program.type(`${line}\r`)
          yield* until(program, (text) => count(text) > before)
          if (after !== undefined) {
            const shown = program.raw().length
            program.type(after)
            yield* until(program, () => program.raw().length > shown)
          }
          // Menus come and go; an Escape and a key at once behind it would be one key.
          yield* Effect.sleep("150 millis")
        }
        assert.match(readFileSync(join(cwd, "out.md"), "utf8"), /^## You\n\none/)
        program.type("/quit\r")
        assert.equal(yield* Effect.promise(() => program.ended), 0)
      })
    )
  )

  it.live.runIf(isFull)("shows all that a sub-agent said and did", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const program = yield* openProgram(["--demo", "--yolo", "chat", "What is here?"])
        yield* until(program, "The report is in")
        yield* until(program, ready)
        program.type("/agents\r")
        yield* until(program, "2. general-purpose")
        program.type("/agents 1\r")
        // Keys that are typed while another program has the terminal are that program's.
        yield* until(program, (text) => /› All files: count[^]*✓ glob[^]*\/ commands/.test(text))
        program.type("/agents 9\r")
        yield* until(program, "there are 1 to 3")
      })
    )
  )

  it.live.runIf(isFull)("takes back changes of a run and of a chat of lines", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const writing = (name: string) =>
          stream(answer([{ call: "write_file", id: `toolu_${name}`, input: { file_path: name, content: "x" } }]))
        const { url } = yield* serve(writing("a"), say("One."), writing("b"), say("Two."))
        const cwd = built.folder()
        const env = {
          ANTHROPIC_BASE_URL: url,
          ANTHROPIC_API_KEY: "sk-ant-test",
          HOME: cwd,
          XDG_CONFIG_HOME: join(cwd, "config"),
          XDG_DATA_HOME: join(cwd, "data")
        }
        const has = () => ["a", "b"].map((name) => existsSync(join(cwd, name)))
        const edits = ["--approvals", "auto-edit"]
        const ran = yield* built.run(cwd, ["run", "make a", ...edits], env)
        assert.equal(ran.code, 0, ran.err)
        const lines = yield* built.run(cwd, ["resume", "--plain", ...edits], env, "make b\n")
        assert.equal(lines.code, 0, lines.err)
        assert.deepEqual(has(), [true, true])
        const program = yield* openProgram(["resume"], env, cwd)
        yield* until(program, ready)
        for (const what of ["make b", "make a"]) {
          program.type("/undo\r")
          yield* until(program, "take back the words and these files?")
          program.type("\u001b[B\r")
          yield* until(program, `taken back (1 path): ${what}`)
          // The words are a draft again, which goes away by itself.
          yield* Effect.sleep("500 millis")
          program.type("\u0003")
          yield* Effect.sleep("500 millis")
        }
        assert.deepEqual(has(), [false, false])
      })
    )
  )
})
