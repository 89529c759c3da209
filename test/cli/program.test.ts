/** The program as a process: its output, its channels, and its exit codes. */
import { execFile, execFileSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import manifest from "../../package.json" with { type: "json" }
import { answer, error, say, serve, silence, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()
const { folder, run, start } = program

const demo = (cwd: string, ...args: ReadonlyArray<string>) => run(cwd, ["run", "What is here?", "--demo", ...args])

/** Runs the demo behind a line of the shell. Gives its code, its output and its errors. */
const runBehind = (line: string): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.callback((done) => {
    const cwd = folder()
    const words = ["-c", `${line}; exec "$@"`, "sh", process.execPath, program.bin, "run", "hi", "--demo"]
    const env = { PATH: process.env["PATH"], HOME: cwd }
    execFile("sh", words, { cwd, env }, (error, out, err) => done(Effect.succeed([error?.code, out, err])))
  })

const threadOf = (out: string): string => {
  const last = out.trim().split("\n").at(-1) ?? "{}"
  return JSON.parse(last).threadId
}

describe("the command line", { concurrent: true, timeout: 60_000 }, () => {
  it.effect.runIf(isFull)("suggests the right command, flag, field and variable for a misspelt one, with code 2", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const [other, command, flag, shared, variable, version, place] = yield* Effect.all(
        [
          run(cwd, ["--continue"]),
          run(cwd, ["sesions"]),
          run(cwd, ["run", "--jsonn", "hi"]),
          run(cwd, ["run", "--modle", "a:b", "hi"]),
          run(cwd, ["config"], { DEEPAGENTS_MODLE: "x" }),
          run(cwd, ["--vesrion"]),
          run(cwd, ["../other"])
        ],
        { concurrency: 4 }
      )
      assert.match(place.err, /deepagents --cwd "\.\.\/other"/)
      assert.match(version.err, /Did you mean "--version"\?/)
      assert.deepEqual([command.out, flag.out, shared.out], ["", "", ""])
      assert.match(flag.err, /deepagents run --help/)
      assert.deepEqual([command.code, flag.code, shared.code, variable.code], [2, 2, 2, 2])
      assert.match(command.err, /sessions/)
      assert.match(flag.err, /--json/)
      assert.match(shared.err, /Did you mean "--model"\?/)
      assert.match(other.err, /This is a command: deepagents resume/)
      assert.match(variable.err, /DEEPAGENTS_MODEL/)
      mkdirSync(join(cwd, ".deepagents"))
      writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ modle: "openai:gpt-5.4" }))
      const field = yield* run(cwd, ["config", "--trust"])
      assert.equal(field.code, 2)
      assert.match(field.err, /config\.json: there is no setting "modle"\. Did you mean "model"\?/)
      writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ maxTurns: "many" }))
      const value = yield* run(cwd, ["config", "--trust"])
      assert.match(value.err, /config\.json: maxTurns is "many"; expected/)
      writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ models: { "a:b": { window: 9 } } }))
      const inside = yield* run(cwd, ["config", "--trust"])
      assert.match(inside.err, /models\.a:b\.window: there is no such field\. \(.*contextWindowTokens/)
      writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ permissions: { alow: [] } }))
      const rules = yield* run(cwd, ["config", "--trust"])
      assert.match(rules.err, /permissions\.alow: there is no such field\. Did you mean "allow"\?/)
      writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ approvals: "yolo" }))
      const yolo = yield* run(cwd, ["config", "--trust"])
      assert.equal(yolo.code, 2)
      assert.match(yolo.err, /--yolo/)
    })
  )

  it.effect.runIf(isFull)("takes the user's folder from the system without HOME, and words for no command", () =>
    Effect.gen(function* () {
      const cwd = folder()
      mkdirSync(join(cwd, ".config/deepagents"), { recursive: true })
      writeFileSync(join(cwd, ".config/deepagents/config.json"), JSON.stringify({ model: "of:a-project" }))
      for (const home of ["", "relative"]) {
        const { code, out } = yield* run(cwd, ["config"], { HOME: home })
        assert.equal(code, 0)
        assert.notInclude(out, "of:a-project")
      }
      const prompt = yield* run(cwd, ["Why does the test fail?"])
      assert.deepEqual([prompt.code, prompt.out], [2, ""])
      assert.match(prompt.err, /deepagents run "Why does the test fail\?"/)
    })
  )

  it.effect("on a node that is too old, says which one it needs", () =>
    Effect.gen(function* () {
      const older = `
        import module from "node:module"
        delete module.enableCompileCache
        module.syncBuiltinESMExports()
        Object.defineProperty(process, "version", { value: "v20.20.2" })`
      const preload = `--import=data:text/javascript,${encodeURIComponent(older)}`
      const { code, err, out } = yield* run(folder(), ["--version"], { NODE_OPTIONS: preload })
      assert.deepEqual([code, out], [1, ""])
      assert.equal(
        err,
        `deepagents needs Node ${manifest.engines.node.slice(2)} or newer, and this is v20.20.2: https://nodejs.org\n`
      )
    })
  )

  it.effect.runIf(isFull)("reports the problem of a file, a folder, a flag and a key in words, with code 2", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const config = join(cwd, "config")
      mkdirSync(join(config, "deepagents/config.json"), { recursive: true })
      const login = ["models", "login", "anthropic"]
      const cases: ReadonlyArray<readonly [ReturnType<typeof run>, RegExp]> = [
        [demo(cwd, "--file", "config"), /^config: it is a folder \(EISDIR\)\n$/],
        [demo(cwd, "--output-schema", "none.json"), /^--output-schema: none\.json: it is not there \(ENOENT\)\n$/],
        [demo(cwd, "--cwd", "nowhere"), /^--cwd: .*nowhere: it is not there \(ENOENT\)\n$/],
        [demo(cwd, "--cwd", program.bin), /^--cwd: .* is no folder\n$/],
        [demo(cwd, "--max-turns", "0"), /^--max-turns is 0; expected /],
        [run(cwd, ["config"], { DEEPAGENTS_BUDGET: "much" }), /^DEEPAGENTS_BUDGET is .*; expected /],
        [run(cwd, ["config"], { XDG_CONFIG_HOME: config }), /config\.json: it is a folder, and no regular file\n$/],
        [run(cwd, login, {}, "sk-ant-…"), /^This is not a key: [^]* no key was kept\.\n$/]
      ]
      for (const [ending, words] of cases) {
        const { code, err } = yield* ending
        assert.match(err, words)
        assert.equal(code, 2, err)
      }
    })
  )

  it.effect.runIf(isFull)("logs, such as that a disk takes no more, are not on the standard output", () =>
    Effect.gen(function* () {
      const ended = yield* runBehind("ulimit -f 400")
      assert.deepEqual(ended.slice(0, 2), [1, ""])
      assert.match(String(ended[2]), /can't keep its thread/)
    })
  )

  it.effect.runIf(isFull)("says that the working folder was removed", () =>
    Effect.map(runBehind("mkdir gone && cd gone && rmdir ../gone"), (ended) =>
      assert.deepEqual(ended, [
        2,
        "",
        "The folder that you are in was removed. Go to another one (cd), or name one: --cwd PATH\n"
      ])
    )
  )

  it.effect.runIf(isFull)("with --json, a failure before a run is the result all the same, as the last line", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const lastOf = ({ out }: { readonly out: string }) => JSON.parse(out.trim().split("\n").at(-1) ?? "")
      const noKey = yield* run(cwd, ["run", "hi", "--json"])
      assert.deepInclude(lastOf(noKey), { _tag: "Result", exitCode: 3 })
      assert.equal(noKey.code, 3)
      assert.isTrue(noKey.err.includes(lastOf(noKey).error))
      const noFile = yield* run(cwd, ["run", "hi", "--json", "--file", "none.txt", "--demo"])
      assert.deepInclude(lastOf(noFile), { _tag: "Result", exitCode: noFile.code })
      assert.include(lastOf(noFile).error, "none.txt")
      mkdirSync(join(cwd, ".deepagents"))
      writeFileSync(join(cwd, "data"), "")
      const noFolder = yield* run(cwd, ["run", "hi", "--json", "--demo"], { XDG_DATA_HOME: join(cwd, "data") })
      assert.deepInclude(lastOf(noFolder), { _tag: "Result", exitCode: 1 })
      assert.match(noFolder.err, /No folder can be made there: .*data.*set XDG_DATA_HOME/)
      writeFileSync(join(cwd, ".deepagents/config.json"), "{")
      const noSettings = yield* run(cwd, ["run", "hi", "--json", "--trust"])
      assert.deepInclude(lastOf(noSettings), { _tag: "Result", exitCode: 2 })
    })
  )

  it.effect("answers questions about itself from one file, for any other words", () =>
    Effect.gen(function* () {
      const cwd = folder()
      // All other files of the program are missing here.
      const alone = join(cwd, "deepagents.js")
      copyFileSync(program.bin, alone)
      copyFileSync(join(dirname(program.bin), "about.js"), join(cwd, "about.js"))
      const ask = (...words: ReadonlyArray<string>) => run(cwd, words, {}, "", alone)
      const [help, inside, late, version, completions, words] = yield* Effect.all(
        [
          ask("--help"),
          ask("sessions", "list", "-h"),
          ask("run", "--cwd", "/nowhere", "--file", "--help"),
          ask("--version"),
          ask("--completions", "zsh"),
          ask("run", "--", "--help")
        ],
        { concurrency: 3 }
      )
      assert.deepEqual([help.code, inside.code, late.code, version.code, completions.code], [0, 0, 0, 0, 0])
      assert.match(help.out, /SUBCOMMANDS[^]*doctor/)
      assert.match(inside.out, /--archived/)
      assert.match(late.out, /--output-schema/)
      assert.match(version.out, /^deepagents v\d/)
      assert.match(completions.out, /compdef/)
      assert.match(words.err, /ERR_MODULE_NOT_FOUND/)
    })
  )

  it.effect("shows the origin of each setting: default < user < project < environment < flags", () =>
    Effect.gen(function* () {
      const cwd = folder()
      mkdirSync(join(cwd, ".deepagents"))
      mkdirSync(join(cwd, "config/deepagents"), { recursive: true })
      writeFileSync(
        join(cwd, "config/deepagents/config.json"),
        JSON.stringify({ model: "a:user", maxTurns: 1, budget: 1, tokens: 5 })
      )
      writeFileSync(
        join(cwd, ".deepagents/config.json"),
        JSON.stringify({ model: "a:project", maxTurns: 2, budget: 2 })
      )
      const env = { XDG_CONFIG_HOME: join(cwd, "config"), DEEPAGENTS_MODEL: "a:env", DEEPAGENTS_MAX_TURNS: "3" }
      const before = JSON.parse((yield* run(cwd, ["config", "--json"], env)).out).settings
      assert.deepEqual([before.budget.value, before.budget.from], [1, "user"])
      const { settings } = JSON.parse((yield* run(cwd, ["config", "--json", "--trust", "-m", "a:flag"], env)).out)
      assert.deepEqual(
        ["model", "maxTurns", "budget", "tokens", "agent"].map((key) => [settings[key].value, settings[key].from]),
        [
          ["a:flag", "flag"],
          [3, "environment"],
          [2, "project"],
          [5, "user"],
          ["deep", "default"]
        ]
      )
    })
  )

  it.effect("without a key, lists the possible setups, with code 3; refuses missing files with 2", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const [none, named, doctor, unknown, missing, empty, models] = yield* Effect.all(
        [
          run(cwd, ["run", "hi"]),
          run(cwd, ["run", "hi", "-m", "anthropic:claude"]),
          run(cwd, ["doctor"]),
          run(cwd, ["run", "hi", "-m", "antropic:claude"]),
          run(cwd, ["run", "hi", "--demo", "-f", "no.txt"]),
          run(cwd, ["run", "--demo"]),
          run(cwd, ["models", "-m", "antropic:claude"])
        ],
        { concurrency: 3 }
      )
      assert.deepEqual([none.code, unknown.code, missing.code, empty.code], [3, 3, 2, 2])
      assert.equal(models.code, 3)
      assert.match(models.err, /Did you mean "anthropic"/)
      assert.equal(named.code, 3)
      assert.match(named.err, /no key of anthropic.*deepagents models login anthropic, or export ANTHROPIC_API_KEY/)
      assert.equal(doctor.code, 1)
      assert.match(doctor.out, /✗ +model: opened +no provider has a key[^]*✓ +sessions: writable/)
      assert.match(doctor.out, /diagnostics after edits .*(?:tsc|not installed for \.ts)/)
      assert.match(none.err, /ANTHROPIC_API_KEY[^]*--demo/)
      assert.match(unknown.err, /Did you mean "anthropic"/)
      assert.match(missing.err, /^no\.txt: it is not there/)
      assert.match(empty.err, /There is no prompt/)
    })
  )

  it.effect(
    "keeps a key sealed, never in the clear, and asks the model with it; a key that is refused ends with 3",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = folder()
          const { requests, url } = yield* serve(say("Hello."), error(401, "authentication_error", "invalid x-api-key"))
          const env = { XDG_DATA_HOME: join(cwd, "data"), ANTHROPIC_BASE_URL: url }
          const offline = { ...env, ANTHROPIC_BASE_URL: "http://127.0.0.1:1" }
          const kept = yield* run(cwd, ["models", "login", "anthropic"], offline, "sk-ant-kept\n")
          assert.equal(kept.code, 0, kept.err)
          const files = readdirSync(join(cwd, "data"), { recursive: true, encoding: "utf8" })
            .map((name) => join(cwd, "data", name))
            .filter((name) => statSync(name).isFile())
          assert.ok(files.length > 0)
          for (const file of files) {
            assert.notInclude(readFileSync(file, "utf8"), "sk-ant-kept")
            assert.equal(statSync(file).mode & 0o077, 0, file)
          }
          const good = yield* run(cwd, ["run", "hi"], env)
          assert.equal(good.code, 0, good.err)
          assert.equal(good.out, "Hello.\n")
          assert.equal(requests.length, 1)
          const bad = yield* run(cwd, ["run", "hi"], env)
          assert.equal(bad.code, 3)
          assert.match(bad.err, /check the key[^]*models login anthropic\n[^]*deepagents models shows the origin/)
          assert.notInclude(bad.err + bad.out, "sk-ant-kept")
        })
      )
  )

  it.effect("suggests flags of all commands, and asks no agent below a command", () =>
    Effect.gen(function* () {
      const cwd = folder()
      for (const [args, wanted] of [
        [["--vesrion"], /Did you mean "--version"\?/],
        [["run", "--vesrion", "hi"], /Did you mean "--version" or/],
        [["vesrion"], /Did you mean "--version"\?/],
        [["sessions", "lst"], /Did you mean this\?\s+list/],
        [["trust", "lst"], /^Unknown subcommand "lst" for "deepagents trust"\s+All flags/]
      ] as const) {
        const { code, err } = yield* run(cwd, args)
        assert.equal(code, 2)
        assert.match(err, wanted)
      }
    })
  )

  it.effect("refuses settings that are no regular file, and waits for no pipe", () =>
    Effect.gen(function* () {
      for (const [make, wanted] of [
        ["mkfifo config.json", /config\.json: it is a pipe, and no regular file/],
        ["ln -s /dev/zero config.json", /config\.json: it is a device/],
        ["mkdir config.json", /config\.json: it is a folder/],
        ["ln -s /nowhere/x config.json", /config\.json: its link leads to \/nowhere\/x, where nothing is/],
        ["ln -s config.json config.json", /config\.json: its link leads in a circle/],
        ["truncate -s 2G config.json", /config\.json: it has 2147483648 bytes, and at most 20000000 are read/]
      ] as const) {
        const cwd = folder()
        mkdirSync(join(cwd, "deepagents"))
        execFileSync("sh", ["-c", make], { cwd: join(cwd, "deepagents") })
        const { code, err } = yield* run(cwd, ["config"], { XDG_CONFIG_HOME: cwd })
        assert.equal(code, 2, err)
        assert.match(err, wanted)
      }
    })
  )

  it.effect("fails soon, and names address and variable, where nothing listens on this machine", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.scoped(serve())
      const begun = Date.now()
      const done = yield* run(folder(), ["run", "hi", "-m", "ollama:m"], { OLLAMA_BASE_URL: url })
      assert.deepEqual([done.code, done.out], [1, ""], done.err)
      assert.match(done.err, /\nollama\/m: nothing listens at http:\S+; start [^\n]* OLLAMA_BASE_URL; tried 3 times in/)
      assert.isBelow(Date.now() - begun, 25_000)
    })
  )

  it.effect("tells why an answer is late on the standard error: of a run, and of a chat by lines", () =>
    Effect.scoped(
      Effect.gen(function* () {
        for (const args of [["run", "hi"], ["--plain"]]) {
          const { url } = yield* serve(error(529, "overloaded_error", "overloaded"), say("Hello."))
          const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
          const { code, err, out } = yield* run(folder(), args, env, "hi\n")
          assert.equal(code, 0, err)
          assert.include(out, "Hello.\n")
          assert.notInclude(out, "asking again")
          assert.include(err.replaceAll(/\s+/g, " "), "asking again in")
        }
      })
    )
  )

  it.effect("prints the answer alone; events as lines with --json, the result last; keeps the session", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const plain = yield* demo(cwd)
      assert.equal(plain.code, 0, plain.err)
      assert.match(plain.out, /^The report was not written/)
      const asJson = yield* demo(cwd, "--json")
      const events = asJson.out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.equal(events[0]._tag, "RunStarted")
      assert.deepEqual(
        [events.at(-1)._tag, events.at(-1).exitCode, events.at(-1).stopReason],
        ["Result", 0, "completed"]
      )
      const id = threadOf(asJson.out)
      const [listed, shown, exported, found] = yield* Effect.all(
        [
          run(cwd, ["sessions", "--json"]),
          run(cwd, ["sessions", "show", id]),
          run(cwd, ["sessions", "export", id.slice(-4), "--format", "jsonl"]),
          run(cwd, ["sessions", "search", "here"])
        ],
        { concurrency: 4 }
      )
      assert.deepEqual(
        JSON.parse(listed.out).map(({ title }: { readonly title: string }) => title),
        ["What is here?", "What is here?"]
      )
      assert.match(shown.out, /> What is here\?[^]*→ ls/)
      assert.ok(exported.out.trim().split("\n").length > 10)
      assert.include(found.out, id)
      if (!isFull) return
      const forked = (yield* run(cwd, ["sessions", "fork", id])).out.trim()
      const more = yield* run(cwd, ["run", "And now?", "--demo", "--session", forked])
      assert.match(more.out, /You said: “And now\?”/)
      assert.equal((yield* run(cwd, ["sessions", "archive", id])).code, 0)
      assert.notInclude((yield* run(cwd, ["sessions", "list"])).out, id)
    })
  )

  it.effect.runIf(isFull)(
    "copies its store to another one, which is closed until it is opened again, and says no password",
    () =>
      Effect.gen(function* () {
        const cwd = folder()
        const run = (...[folder, args]: Parameters<typeof program.run>) =>
          program.run(folder, args, { XDG_DATA_HOME: join(cwd, "data") })
        const id = threadOf((yield* run(cwd, ["run", "What is here?", "--demo", "--json"])).out)
        const file = join(cwd, "data/deepagents/sessions.db")
        const copied = yield* run(cwd, ["sessions", "copy", file, "copy/"])
        assert.equal(copied.code, 0, copied.err)
        assert.include(copied.out, `1 sessions are in ${join(cwd, "copy")}, 1 of them copied now`)
        assert.equal(readdirSync(join(cwd, "copy")).length, 1)
        const closed = yield* run(cwd, ["run", "And now?", "--demo", "--session", id])
        assert.equal(closed.code, 1)
        assert.include(closed.err, `were moved to ${join(cwd, "copy")}: go on there`)
        assert.equal((yield* run(cwd, ["sessions", "show", id])).code, 0)
        const again = yield* run(cwd, ["sessions", "copy", file, "copy/", "--json"])
        assert.deepInclude(JSON.parse(again.out), { threads: 1, copied: 0, from: file, to: join(cwd, "copy") })
        assert.include((yield* run(cwd, ["sessions", "reopen", file])).out, "takes changes again")
        assert.equal((yield* run(cwd, ["run", "And now?", "--demo", "--session", id])).code, 0)

        const [absent, nameless, unknown, postgres, redis] = yield* Effect.all(
          [
            run(cwd, ["sessions", "copy", "absent.db", "copy/"]),
            run(cwd, ["sessions", "copy", file, "copy2"]),
            run(cwd, ["sessions", "copy", file, "mysql://ada:s3cret@localhost/db"]),
            run(cwd, ["sessions", "copy", file, "postgres://ada:s3cret@127.0.0.1:1/db"]),
            run(cwd, ["sessions", "copy", file, "redis://ada:s3cret@127.0.0.1:1"])
          ],
          { concurrency: 3 }
        )
        assert.deepEqual([absent.code, nameless.code, unknown.code, postgres.code, redis.code], [2, 2, 2, 1, 1])
        assert.include(absent.err, "absent.db: give an SQLite file")
        assert.ok(!existsSync(join(cwd, "absent.db")))
        assert.include(nameless.err, "name a file with .db at the end")
        assert.include(postgres.err, "postgres://ada@127.0.0.1:1/db: ")
        assert.include(redis.err, "redis://ada@127.0.0.1:1: ")
        for (const { err, out } of [unknown, postgres, redis]) assert.notInclude(err + out, "s3cret")
        assert.equal((yield* run(cwd, ["run", "Still open?", "--demo", "--session", id])).code, 0)
      })
  )

  it.effect("ends at a limit with 4, and with 6 if a call waits for a decision", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = folder()
        const rounds = yield* demo(cwd, "--max-turns", "1")
        assert.equal(rounds.code, 4)
        assert.match(rounds.err, /--max-turns/)
        const call = { call: "write_file", id: "toolu_1", input: { file_path: "a.txt", content: "x" } }
        const { url } = yield* serve(stream(answer([call])), stream(answer([call])), say("Written."))
        const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
        const waits = yield* run(cwd, ["run", "Write it"], env)
        assert.equal(waits.code, 6, waits.err)
        assert.match(waits.err, /write_file[^]*deepagents resume/)
        assert.notOk(existsSync(join(cwd, "a.txt")))
        const yolo = yield* run(cwd, ["run", "Write it", "--yolo"], env)
        assert.equal(yolo.code, 0, yolo.err)
        assert.equal(readFileSync(join(cwd, "a.txt"), "utf8"), "x")
      })
    )
  )

  it.live.runIf(isFull)(
    "lets one process at a time go on with a session; another one is told, and disturbs nothing",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = folder()
          const { requests, url } = yield* serve(say("First."), silence, say("Third."))
          const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: join(cwd, "data") }
          const id = threadOf((yield* run(cwd, ["run", "hi", "--json"], env)).out)
          const second = start(cwd, ["run", "more", "--session", id], env)
          while (requests.length < 2) yield* Effect.sleep("20 millis")
          const [refused, chat] = yield* Effect.all(
            [
              run(cwd, ["run", "me, too", "--session", id], env),
              run(cwd, ["resume", id, "--plain"], env, "me, three\n")
            ],
            { concurrency: 2 }
          )
          assert.equal(refused.code, 1)
          assert.match(refused.err, /^Another process is at work on session .*deepagents sessions fork/)
          assert.match(
            chat.out,
            /failed: Another process is at work[^]*failed: The other process is still at work on it/
          )
          assert.equal(chat.out.split("Another process").length, 2)
          const archived = yield* run(cwd, ["sessions", "archive", id], env)
          assert.deepEqual([archived.code, archived.err], [1, refused.err])
          // However it ends, the session is free again.
          second.child.kill("SIGKILL")
          yield* Effect.promise(() => second.ended)
          const after = yield* run(cwd, ["run", "and now", "--session", id], env)
          assert.equal(after.out, "Third.\n")
          const sessionText = (yield* run(cwd, ["sessions", "show", id], env)).out
          for (const said of ["hi", "more", "and now"]) assert.include(sessionText, `> ${said}`)
          assert.notInclude(sessionText, "me, t")
        })
      )
  )

  it.live.runIf(isFull)(
    "ends a command of the agent with itself, however it is told to end, and says how to go on",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const call = { call: "execute", id: "toolu_1", input: { command: "echo $$ > pid; exec sleep 60" } }
          yield* Effect.forEach(
            [
              ["SIGINT", 130],
              ["SIGHUP", 129],
              ["SIGTERM", 143]
            ] as const,
            Effect.fnUntraced(function* ([signal, code]) {
              const cwd = folder()
              const { requests, url } = yield* serve(stream(answer([call])), say("Gone on."))
              const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
              const { child, ended } = start(cwd, ["run", "Sleep", "--yolo"], env)
              const pid = () => Number(existsSync(join(cwd, "pid")) ? readFileSync(join(cwd, "pid"), "utf8") : 0)
              while (pid() === 0) yield* Effect.sleep("20 millis")
              assert.ok(process.kill(pid(), 0))
              // A terminal that is closed says so twice.
              child.kill(signal)
              child.kill(signal)
              const { code: given, err } = yield* Effect.promise(() => ended)
              assert.equal(given, code, err)
              assert.throws(() => process.kill(pid(), 0), /ESRCH/)
              const thread = /deepagents resume (\S+)/.exec(err)?.[1] ?? err
              const more = yield* run(cwd, ["run", "Go on", "--session", thread, "--yolo"], env)
              assert.equal(more.out, "Gone on.\n", more.err)
              assert.include(JSON.stringify(requests[1]), "This call was interrupted. Whether it had an effect")
            }),
            { concurrency: "unbounded" }
          )
        })
      )
  )

  it.effect("ends at once at Ctrl-C with 130 and says how to go on; a pipe that is closed early ends it quietly", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const { child, ended, out } = start(cwd, ["run", "What is here?", "--demo", "--json"])
      yield* Effect.promise(
        () =>
          new Promise<void>((done) => child.stdout.on("data", () => (out().includes("TextDelta") ? done() : undefined)))
      )
      child.kill("SIGINT")
      const stopped = yield* Effect.promise(() => ended)
      assert.equal(stopped.code, 130)
      assert.match(stopped.err, /deepagents resume \d{8}-/)
      assert.notMatch(stopped.err, /\n +at /)
      const closed = start(cwd, ["run", "What is here?", "--demo", "--json"])
      closed.child.stdout.once("data", () => closed.child.stdout.destroy())
      const left = yield* Effect.promise(() => closed.ended)
      assert.equal(left.code, 141)
      assert.notMatch(left.err, /\n +at /)
    })
  )

  it.effect.runIf(isFull)("reads a project's own agents and instructions only once its folder is trusted", () =>
    Effect.gen(function* () {
      const cwd = folder()
      mkdirSync(join(cwd, ".deepagents/agents"), { recursive: true })
      mkdirSync(join(cwd, ".claude/agents"), { recursive: true })
      writeFileSync(join(cwd, ".deepagents/agents/own.md"), "---\ndescription: Ours\n---\n\nYou are ours.\n")
      writeFileSync(
        join(cwd, ".claude/agents/theirs.md"),
        "---\nname: theirs\ndescription: Theirs\ntools: Read, Grep, Bash(git:*)\nmodel: inherit\ncolor: red\n---\n\nYou are theirs.\n"
      )
      const before = yield* run(cwd, ["agents"])
      assert.notInclude(before.out, "own")
      const said = yield* run(cwd, ["run", "hi", "--demo", "-a", "own"])
      assert.equal(said.code, 2)
      assert.match(said.err, /Left out, as it is not trusted: new agent theirs, new agent own/)
      const after = yield* run(cwd, ["agents", "--trust"])
      assert.match(after.out, /own +project +Ours/)
      assert.match(after.out, /theirs +project +Theirs/)
      assert.equal((yield* run(cwd, ["run", "hi", "--demo", "-a", "theirs"])).code, 0)
      writeFileSync(
        join(cwd, ".deepagents/agents/own.md"),
        "---\ndescription: Ours\ntoools: [ls]\n---\n\nYou are ours.\n"
      )
      const changed = yield* run(cwd, ["run", "hi", "--demo", "-a", "theirs"])
      assert.equal(changed.code, 0)
      assert.match(changed.err, /Left out, as it is not trusted: changed agent own/)
      const broken = yield* run(cwd, ["run", "hi", "--demo", "-a", "own", "--trust"])
      assert.equal(broken.code, 2)
      assert.match(broken.err, /own\.md: there is no field "toools"\. Did you mean "tools"/)
      const doctor = yield* run(cwd, ["doctor", "--demo"])
      assert.equal(doctor.code, 1)
      assert.match(doctor.out, /✗ +agent: .*own\.md/)
    })
  )

  it.effect.runIf(isFull)(
    "gives agents the servers of a trusted folder; a failing one is a warning, and a failure to doctor",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = folder()
          const tools = ["get-sum", "toggle-simulated-logging"]
          const server = join(process.cwd(), "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
          writeFileSync(
            join(cwd, ".mcp.json"),
            JSON.stringify({
              mcpServers: {
                everything: { command: process.execPath, args: [server], approval: "never", tools },
                gone: { command: join(cwd, "gone") }
              }
            })
          )
          assert.equal((yield* run(cwd, ["mcp", "--json"])).out, "[]\n")
          const listed = yield* run(cwd, ["mcp", "list", "--json", "--trust"])
          assert.deepEqual(
            JSON.parse(listed.out).map(({ name, origin }: { readonly name: string; readonly origin: string }) => [
              name,
              origin
            ]),
            [
              ["everything", "project"],
              ["gone", "project"]
            ]
          )
          const call = { call: "everything__get-sum", id: "toolu_1", input: { a: 2, b: 3 } }
          const changing = { call: "everything__toggle-simulated-logging", id: "toolu_1", input: {} }
          const { requests, url } = yield* serve(stream(answer([call])), say("It is 5."), stream(answer([changing])))
          const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
          const [tested, near, doctor, sum] = yield* Effect.all(
            [
              run(cwd, ["mcp", "test", "--json"]),
              run(cwd, ["mcp", "test", "everythin"]),
              run(cwd, ["doctor", "--demo"]),
              run(cwd, ["run", "How much is 2 and 3?", "--yolo", "--json"], env)
            ],
            { concurrency: 4 }
          )
          assert.equal(tested.code, 1, tested.err)
          assert.deepEqual(
            JSON.parse(tested.out).map(({ problem, tools }: { readonly problem: unknown; readonly tools: unknown }) => [
              problem === null,
              tools
            ]),
            [
              [true, tools.map((tool) => `everything__${tool}`)],
              [false, []]
            ]
          )
          assert.equal(near.code, 2)
          assert.match(near.err, /everything/)
          assert.equal(doctor.code, 1)
          assert.match(doctor.out, /✓ +servers: everything/)
          assert.match(doctor.out, /✗ +servers: gone/)
          assert.equal(sum.code, 0, sum.err)
          assert.include(sum.out, "mcp-server-unavailable")
          assert.include(JSON.stringify(requests[1]), "sum of 2 and 3 is 5")
          // A project can't take the question away.
          const asks = yield* run(cwd, ["run", "How much is 2 and 3?"], env)
          assert.equal(asks.code, 6, asks.err)
        })
      )
  )

  it.effect.runIf(isFull)(
    "adds a server to the user's file without its secrets, and refuses a second of the name",
    () =>
      Effect.gen(function* () {
        const cwd = folder()
        const env = { XDG_CONFIG_HOME: join(cwd, "config") }
        const file = join(cwd, "config/deepagents/mcp.json")
        const args = ["mcp", "add", "files", "--env", "TOKEN", "--", "npx", "-y", "some-server", "--root", "."]
        const added = yield* run(cwd, args, env)
        assert.equal(added.code, 0, added.err)
        assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), {
          mcpServers: {
            files: {
              type: "stdio",
              command: "npx",
              args: ["-y", "some-server", "--root", "."],
              env: { TOKEN: "${TOKEN}" }
            }
          }
        })
        assert.equal(statSync(file).mode & 0o077, 0)
        assert.equal((yield* run(cwd, args, env)).code, 2)
        const login = yield* run(cwd, ["mcp", "login", "files"], env)
        assert.equal(login.code, 2)
        assert.match(login.err, /process/)
      })
  )

  it.effect.runIf(isFull)(
    "offers git and search; a search provider without its key is refused, with the variable",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = folder()
          const { requests, url } = yield* serve(say("Hello."))
          const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test" }
          const done = yield* run(cwd, ["run", "hi"], env)
          assert.equal(done.code, 0, done.err)
          const sent = JSON.stringify(requests[0])
          for (const tool of ["git_status", "git_log", "web_search", "fetch_url"]) assert.include(sent, tool)
          // No tool repeats the shell's abilities, and no tool's text repeats general rules.
          assert.notInclude(sent, "git_commit")
          assert.notInclude(sent, "additionalProperties")
          assert.isBelow(JSON.stringify(requests[0]?.body.tools).length, 17_000)
          mkdirSync(join(cwd, "config/deepagents"), { recursive: true })
          writeFileSync(join(cwd, "config/deepagents/config.json"), JSON.stringify({ search: "brave" }))
          const refused = yield* run(cwd, ["run", "hi"], { ...env, XDG_CONFIG_HOME: join(cwd, "config") })
          assert.equal(refused.code, 2)
          assert.match(refused.err, /BRAVE_API_KEY/)
        })
      )
  )

  it.effect("finds the dozen of packaged skills, and is well in an empty folder", () =>
    Effect.gen(function* () {
      const cwd = folder()
      const [skills, doctor, completions] = yield* Effect.all(
        [
          run(cwd, ["skills", "--json"]),
          run(cwd, ["doctor", "--demo", "--format", "json"]),
          run(cwd, ["--completions", "fish"])
        ],
        { concurrency: 3 }
      )
      const found = JSON.parse(skills.out)
      assert.equal(found.skills.length, 12)
      assert.deepEqual(found.problems, [])
      assert.equal(doctor.code, 0, doctor.out)
      assert.equal(JSON.parse(doctor.out).ok, true)
      assert.include(completions.out, "sessions")
    })
  )
})
