import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Backend, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { Skills } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const sources = ["/skills/user", "/skills/project"]

const skill = (name: string, more = "", body = "BODY") =>
  `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n\n${body}\n`

const tool = (name: string, annotations: Tool.Annotations = {}) =>
  Tool.make(name, { description: "", parameters: {}, annotations, execute: () => Effect.succeed(`${name} ran`) })

const agent = Agent.make({
  name: "agent",
  prompt: "BASE",
  tools: [tool("read_file", { aliases: ["Read"] }), tool("execute"), tool("grep")],
  middleware: [Skills.make({ sources })]
})

const use = (name: string) => ({ name: "use_skill", arguments: { name } })
const call = (name: string) => ({ name, arguments: {} })

const toolsOf = Effect.map(TestChatModel.requests, (requests) =>
  requests.map(({ tools }) => tools.map(({ name }) => name))
)

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

/** The problems that are warned of, in a run on these files. */
const warnings = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.gen(function* () {
    const { events } = yield* AgentTest.collect(agent, "go")
    assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
    const [request] = yield* TestChatModel.requests
    return {
      prompt: request?.systemPrompt ?? "",
      told: events.flatMap((event) => (event._tag === "Warning" ? [`${event.code} ${event.message}`] : []))
    }
  }).pipe(Effect.provide([TestBackend.layer({ files }), TestChatModel.script(["done"])]))

describe("Skills", () => {
  it.effect("names, paths and descriptions are listed by name, the text is not; later sources win", () =>
    Effect.gen(function* () {
      const { prompt, told } = yield* warnings({
        "/skills/user/pdf/SKILL.md": skill(
          "pdf",
          "license: MIT\nmetadata:\n  version: 1.0\n  deep: {a: [b]}\nhooks: x\n"
        ),
        "/skills/user/code-review/SKILL.md": skill("code-review"),
        "/skills/project/pdf/SKILL.md": "---\nname: pdf\ndescription: >\n  Ours,\n  of course.\n---\nBODY",
        "/skills/project/notes/readme.md": "no skill",
        "/skills/project/.hidden/SKILL.md": skill("hidden"),
        "/skills/project/file.md": "BODY"
      })
      assert.deepStrictEqual(told, [])
      assert.isTrue(
        prompt.endsWith(
          "\n\n- code-review (/skills/user/code-review/SKILL.md): Does code-review.\n- pdf (/skills/project/pdf/SKILL.md): Ours, of course."
        )
      )
      assert.notInclude(prompt, "BODY")
    })
  )

  it.effect("the tools of a skill are offered and run once it was loaded, in later runs of the thread too", () =>
    Effect.gen(function* () {
      const withTools = Agent.make({
        name: "agent",
        prompt: "BASE",
        tools: [tool("grep")],
        middleware: [
          Skills.make({
            sources,
            tools: { release: [tool("tag"), tool("publish")], narrow: [tool("measure")], gone: [tool("never")] }
          })
        ]
      })
      const { events } = yield* AgentTest.collect(withTools, "go", { threadId: "t" })
      const { messages = [] } = (yield* SessionStore.checkpoint("t")) ?? {}
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Warning" ? [event.message] : [])),
        ['There are tools for the skill "gone", which no source has.']
      )
      const [unknown, loaded = "", ran, narrowed = ""] = answers(messages)
      assert.include(unknown, "tag")
      assert.notStrictEqual(unknown, "tag ran")
      assert.match(loaded, /BODY\n\nFrom the next turn on you have the tools of this skill: tag, publish\.$/)
      assert.strictEqual(ran, "tag ran")
      // A skill that narrows the tools keeps its own.
      assert.match(narrowed, /\(grep\)[^]*the tools of this skill: measure\.$/)
      yield* Agent.run(withTools, "again", { threadId: "t" })
      assert.deepStrictEqual(yield* toolsOf, [
        ["grep", "use_skill"],
        ["grep", "use_skill"],
        ["grep", "use_skill", "tag", "publish"],
        ["grep", "use_skill", "tag", "publish"],
        ["grep", "leave_skill", "measure"],
        ["grep", "use_skill", "tag", "publish", "measure"]
      ])
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: {
            "/skills/user/release/SKILL.md": skill("release"),
            "/skills/user/narrow/SKILL.md": skill("narrow", "allowed-tools: grep\n")
          }
        }),
        TestChatModel.script([
          TestChatModel.calls([call("tag")]),
          TestChatModel.calls([use("release")]),
          TestChatModel.calls([call("tag")]),
          TestChatModel.calls([use("narrow")]),
          "done",
          "done"
        ]),
        SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
      ])
    )
  )

  it.effect("without skills there is no section and no tool of it", () =>
    Effect.gen(function* () {
      yield* Agent.run(agent, "go")
      const [request] = yield* TestChatModel.requests
      assert.strictEqual(request?.systemPrompt, "BASE")
      assert.deepStrictEqual(yield* toolsOf, [["read_file", "execute", "grep"]])
    }).pipe(Effect.provide([TestBackend.layer(), TestChatModel.script(["done"])]))
  )

  it.effect("keeps all of the frontmatter as texts, for any reading by YAML", () =>
    Effect.gen(function* () {
      const { skills } = yield* Skills.scan(["/skills/user"])
      assert.deepStrictEqual(skills, [
        {
          name: "2024",
          description: "yes",
          license: "~",
          metadata: { version: "1.0", list: ["null"], empty: "" },
          allowedTools: ["Read", "Bash(git add:*)", "grep"],
          path: "/skills/user/2024/SKILL.md",
          directory: "/skills/user/2024"
        }
      ])
    }).pipe(
      Effect.provide(
        TestBackend.layer({
          files: {
            "/skills/user/2024/SKILL.md":
              "\ufeff---\nname: 2024\ndescription: yes\nlicense: ~\nmetadata: {version: 1.0, list: [null], empty: }\nallowed-tools: Read Bash(git add:*),grep\n---\nBODY"
          }
        })
      )
    )
  )

  it.effect("a source may be a skill itself", () =>
    Effect.gen(function* () {
      const { skills, problems } = yield* Skills.scan(["/a/pdf/", "/b"])
      assert.deepStrictEqual(
        skills.map(({ directory, name, path }) => [name, directory, path]),
        [["pdf", "/a/pdf", "/a/pdf/SKILL.md"]]
      )
      assert.deepStrictEqual(problems, [])
    }).pipe(
      Effect.provide(
        TestBackend.layer({ files: { "/a/pdf/SKILL.md": skill("pdf"), "/a/pdf/inner/SKILL.md": skill("inner") } })
      )
    )
  )

  it.effect("leaves out a skill that breaks the specification, with its file and field", () => {
    const bad: Readonly<Record<string, readonly [string, string]>> = {
      plain: ["no frontmatter", "should begin with a line"],
      open: ["---\nname: open\n", "should begin with a line"],
      nothing: ["---\n---\n", "should be a map"],
      list: ["---\n- name\n---\n", "should be a map"],
      noname: ["---\ndescription: x\n---\n", "name: is required"],
      nodesc: ["---\nname: nodesc\n---\n", "description: is required"],
      emptydesc: ["---\nname: emptydesc\ndescription: '  '\n---\n", "description: should be a text that is not empty"],
      longdesc: [`---\nname: longdesc\ndescription: ${"x".repeat(1025)}\n---\n`, "description: should be at most 1024"],
      other: [skill("another"), `name: is "another", and should be that of its directory, "other"`],
      "Up-Case": [skill("Up-Case"), "name: should be a-z, 0-9 and single hyphens"],
      "a--b": [skill("a--b"), "name: should be a-z, 0-9 and single hyphens"],
      "-a": [skill("'-a'"), "name: should be a-z, 0-9 and single hyphens"],
      [`n${"x".repeat(64)}`]: [skill(`n${"x".repeat(64)}`), "name: should be at most 64 characters"],
      compat: [skill("compat", `compatibility: ${"x".repeat(501)}\n`), "compatibility: should be at most 500"],
      meta: [skill("meta", "metadata: text\n"), "metadata: should be"],
      tools: [skill("tools", "allowed-tools: {a: b}\n"), "allowed-tools: should be"],
      twice: [skill("twice", "name: twice\n"), 'the key "name" is there twice'],
      colon: ["---\nname: colon\ndescription: a: b\n---\n", "not valid YAML"]
    }
    return Effect.gen(function* () {
      const files = Object.fromEntries(
        Object.entries(bad).map(([name, [text]]) => [`/skills/user/${name}/SKILL.md`, text])
      )
      const { problems, skills } = yield* Skills.scan(sources).pipe(
        Effect.provide(TestBackend.layer({ files: { ...files, "/skills/user/good/SKILL.md": skill("good") } }))
      )
      assert.deepStrictEqual(
        skills.map(({ name }) => name),
        ["good"]
      )
      for (const [name, [, expected]] of Object.entries(bad)) {
        const found = problems.filter(({ path }) => path === `/skills/user/${name}/SKILL.md`)
        assert.isTrue(
          found.some(({ field, problem }) => (field === "" ? problem : `${field}: ${problem}`).includes(expected)),
          `${name}: ${JSON.stringify(found)}`
        )
      }
    })
  })

  it.effect("at most 20 problems are told in a run, each on a line of bounded length", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(
        Array.from({ length: 30 }, (_, n) => [`/skills/user/s${n}\n${"x".repeat(n === 0 ? 200 : 0)}/SKILL.md`, "bad"])
      )
      const long = "k".repeat(1_000)
      const { told } = yield* warnings({ ...files, "/skills/user/a/SKILL.md": skill("a", `${long}: 1\n${long}: 2\n`) })
      assert.strictEqual(told.length, 20)
      assert.strictEqual(told[19], "skill-invalid There are 12 more problems with skills.")
      for (const line of told) {
        assert.notInclude(line, "\n")
        assert.isAtMost(line.length, 520)
      }
    })
  )

  it.effect("a source that can't be read, a binary and a file too large are problems, and end nothing", () =>
    Effect.gen(function* () {
      const { problems, skills } = yield* Skills.scan(["/denied", "/skills", "/file"])
      assert.deepStrictEqual(skills, [])
      assert.deepStrictEqual(
        problems.map(({ path }) => path),
        ["/denied", "/skills/big/SKILL.md", "/skills/bin/SKILL.md", "/skills/no/SKILL.md", "/file"]
      )
    }).pipe(
      Effect.provide(
        TestBackend.layer({
          files: {
            "/file": "x",
            "/denied/a/SKILL.md": skill("a"),
            "/skills/bin/SKILL.md": new Uint8Array([0, 1, 2, 0]),
            "/skills/big/SKILL.md": skill("big", "", "x\n".repeat(600_000)),
            "/skills/no/SKILL.md": skill("no")
          },
          fail: ({ path }) =>
            path === "/denied" || path === "/skills/no/SKILL.md" ? { _tag: "PermissionDenied" } : undefined
        })
      )
    )
  )

  it.effect("YAML that costs much is refused before it costs: aliases, nesting, keys that are collections", () => {
    const level = (n: number) => `a${n}: &a${n} [${Array.from({ length: 9 }, () => `*a${n - 1}`).join(", ")}]\n`
    const bombs = {
      alias: `a0: &a0 x\n${Array.from({ length: 9 }, (_, n) => level(n + 1)).join("")}`,
      self: "a: &a [*a]\n",
      question: `${"? ".repeat(3_000)}\n`,
      keys: `${"{".repeat(1_000)}a: b${"}: c".repeat(1_000)}\n`,
      shallow: `a: ${"{".repeat(100)}b: c${"}: d".repeat(100)}\n`,
      nest: `a: ${"[".repeat(3_500)}\n`,
      deep: `a: ${"[".repeat(20)}${"]".repeat(20)}\n`,
      long: `a: ${"x".repeat(9_000)}\n`,
      lines: "x:\n".repeat(1_000),
      proto: "__proto__:\n  name: other\n"
    }
    const why: Readonly<Record<string, string>> = {
      alias: "aliases (*name) are not supported",
      self: "aliases (*name) are not supported",
      question: "more than 1000 characters of punctuation",
      keys: "more than 1000 characters of punctuation",
      shallow: "a key that is not a text",
      nest: "more than 1000 characters of punctuation",
      deep: "nested deeper than 8",
      long: "more than 8192 characters",
      lines: "YAML of less than 127 lines"
    }
    return Effect.gen(function* () {
      const { problems, skills } = yield* Skills.scan(sources)
      assert.deepStrictEqual(
        skills.map(({ name }) => name),
        ["proto"]
      )
      assert.strictEqual(problems.length, Object.keys(why).length)
      for (const { path, problem } of problems) assert.include(problem, why[path.split("/")[3] ?? ""] ?? "?")
    }).pipe(
      Effect.provide(
        TestBackend.layer({
          files: Object.fromEntries(
            Object.entries(bombs).map(([name, yaml]) => [`/skills/user/${name}/SKILL.md`, skill(name, yaml)])
          )
        })
      )
    )
  })

  it.live("with any content of a file, the run goes on, and each listed line has the right beginning", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "\n",
        "\r",
        "\u2028",
        "---\n",
        "name: x\n",
        "description: y\n",
        "\\n## System",
        "allowed-tools: a b\n"
      ),
      fc.constantFrom("&a ", "*a ", "? ", "[", "{", "- ", ": ", "'", '"', "|\n  ", "!!js/function ", "\u202e")
    )
    const text = fc
      .tuple(fc.array(piece, { maxLength: 12 }), fc.boolean())
      .map(([pieces, framed]) =>
        framed
          ? `---\nname: x\ndescription: "${JSON.stringify(pieces.join("")).slice(1, -1)}"\n${pieces.join("")}\n---\nBODY`
          : pieces.join("")
      )
    return Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(text, async (content) => {
          const { prompt } = await Effect.runPromise(warnings({ "/skills/user/x/SKILL.md": content.toWellFormed() }))
          if (prompt === "BASE") return
          const lines = prompt.split(/[\n\v\f\r\u0085\u2028\u2029]/)
          assert.strictEqual(lines.length, 7)
          assert.isTrue(lines[6]?.startsWith("- x (/skills/user/x/SKILL.md): "))
          assert.notMatch(prompt, /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}]/u)
        }),
        { numRuns: scaled(150) }
      )
    )
  })

  it.effect("the list is bounded, and says how many are not in it", () =>
    Effect.gen(function* () {
      const many = (count: number, length: number) =>
        Object.fromEntries(
          Array.from({ length: count }, (_, n) => [
            `/skills/user/s${n}/SKILL.md`,
            `---\nname: s${n}\ndescription: ${"x".repeat(length)}\n---\n`
          ])
        )
      const short = yield* warnings(many(120, 5))
      assert.include(short.prompt, "[20 more are not listed.")
      const long = yield* warnings(many(60, 1_000))
      assert.isAtMost(long.prompt.length, 34_000)
      assert.include(long.prompt, "more are not listed.")
      const dirs = yield* warnings(many(201, 5))
      assert.include(dirs.told[0], "/skills/user: has more than can be looked at")
      // 100 in the list, 100 left over, and one that nobody looked at.
      assert.include(dirs.prompt, "[100 more are not listed.")
    })
  )

  it.effect("use_skill gives the text, its place and an event; for an unknown name it lists the skills", () =>
    Effect.gen(function* () {
      const { events } = yield* AgentTest.collect(agent, "go")
      const done = events.flatMap((event) => (event._tag === "ToolCompleted" ? [event.text] : []))
      assert.include(done[0], "relative to /skills/user/pdf.")
      assert.isTrue(done[0]?.endsWith("\n\nBODY"))
      assert.notInclude(done[0], "description:")
      const failed = events.flatMap((event) => (event._tag === "ToolFailed" ? [event.text] : []))
      assert.deepStrictEqual(failed, ['There is no skill "word". There are: pdf.'])
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Custom" ? [[event.name, event.payload]] : [])),
        [["skill", { name: "pdf" }]]
      )
      // No allowed-tools: nothing is narrowed.
      assert.deepStrictEqual(yield* toolsOf, [
        ["read_file", "execute", "grep", "use_skill"],
        ["read_file", "execute", "grep", "use_skill"]
      ])
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { "/skills/user/pdf/SKILL.md": skill("pdf") } }),
        TestChatModel.script([TestChatModel.calls([use("pdf"), use("word")]), "done"])
      ])
    )
  )

  it.effect("the text of a skill is bounded, and the cut says where to read on", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      const [text = ""] = answers(result.messages)
      assert.isAtMost(text.length, 67_000)
      const line = Number(/from line (\d+) on/.exec(text)?.[1])
      const backend = yield* Backend.Backend
      const rest = yield* backend.read("/skills/user/pdf/SKILL.md", { offset: line, limit: 1 })
      const last = /line (\d+)\n\n\[Cut/.exec(text)?.[1]
      assert.strictEqual(rest.kind === "text" ? rest.text : "", `line ${Number(last) + 1}`)
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: {
            "/skills/user/pdf/SKILL.md": skill(
              "pdf",
              "",
              Array.from({ length: 10_000 }, (_, n) => `line ${n}`).join("\n")
            )
          }
        }),
        TestChatModel.script([TestChatModel.calls([use("pdf")]), "done"])
      ])
    )
  )

  it.effect("while a skill with allowed-tools is in use, only those are offered and run, until it is left", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(yield* toolsOf, [
        ["read_file", "execute", "grep", "use_skill"],
        ["read_file", "grep", "leave_skill"],
        ["read_file", "grep", "leave_skill"],
        ["read_file", "execute", "grep", "use_skill"],
        ["read_file", "execute", "grep", "use_skill"]
      ])
      const told = answers(result.messages)
      assert.include(told[0], "only the tools that it allows (read_file, grep)")
      // In the same turn nothing was narrowed yet.
      assert.strictEqual(told[1], "execute ran")
      assert.include(told[2], 'There is no tool "execute" now')
      assert.strictEqual(told[3], "grep ran")
      assert.strictEqual(told[5], "execute ran")
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: { "/skills/user/pdf/SKILL.md": skill("pdf", "allowed-tools: Read, Grep Bash(git:*)\n") }
        }),
        TestChatModel.script([
          TestChatModel.calls([use("pdf"), call("execute")]),
          TestChatModel.calls([call("execute"), call("grep")]),
          TestChatModel.calls([call("leave_skill")]),
          TestChatModel.calls([call("execute")]),
          "done"
        ])
      ])
    )
  )

  it.effect("a limit on arguments is not kept to: the tool is not offered, and a warning says so", () =>
    Effect.gen(function* () {
      const { prompt, told } = yield* warnings({
        "/skills/user/git/SKILL.md": skill("git", "allowed-tools:\n  - Bash(git add:*)\n  - Read\n")
      })
      assert.include(prompt, "- git (")
      assert.strictEqual(told.length, 1)
      assert.include(told[0], '/skills/user/git/SKILL.md: allowed-tools: "Bash(git add:*)"')
    })
  )

  it.effect("a second skill can only narrow further", () =>
    Effect.gen(function* () {
      yield* Agent.run(agent, "go")
      assert.deepStrictEqual((yield* toolsOf).slice(1), [
        ["read_file", "grep", "use_skill", "leave_skill"],
        ["grep", "leave_skill"]
      ])
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: {
            "/skills/user/one/SKILL.md": skill("one", "allowed-tools: Read Grep Skill\n"),
            "/skills/user/two/SKILL.md": skill("two", "allowed-tools: Bash grep\n")
          }
        }),
        TestChatModel.script([TestChatModel.calls([use("one")]), TestChatModel.calls([use("two")]), "done"])
      ])
    )
  )

  it.effect("the loaded text counts: a skill that changed since it was listed is read anew", () => {
    const edit = Tool.make("edit", {
      description: "",
      parameters: {},
      execute: () =>
        Effect.as(
          Backend.Backend.use((backend) =>
            backend.upload([
              {
                path: "/skills/user/pdf/SKILL.md",
                content: new TextEncoder().encode(skill("pdf", "allowed-tools: edit\n"))
              },
              { path: "/skills/user/word/SKILL.md", content: new TextEncoder().encode("broken") }
            ])
          ),
          "edited"
        )
    })
    const editor = Agent.make({
      name: "editor",
      prompt: "BASE",
      tools: [edit, tool("execute")],
      middleware: [Skills.make({ sources })]
    })
    return Effect.gen(function* () {
      const result = yield* Agent.run(editor, "go")
      assert.deepStrictEqual((yield* toolsOf).at(-1), ["edit", "leave_skill"])
      assert.include(answers(result.messages)[1], "The skill can't be used:\n/skills/user/word/SKILL.md")
    }).pipe(
      Effect.provide([
        TestBackend.layer({
          files: { "/skills/user/pdf/SKILL.md": skill("pdf"), "/skills/user/word/SKILL.md": skill("word") }
        }),
        TestChatModel.script([
          TestChatModel.calls([call("edit")]),
          TestChatModel.calls([use("word"), use("pdf")]),
          "done"
        ])
      ])
    )
  })

  it.effect("looks for skills anew in each run, and ends their use when the user says something new", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go")
      const backend = yield* Backend.Backend
      yield* backend.write("/skills/project/word/SKILL.md", skill("word"))
      yield* Agent.run(agent, "again", { history: first.messages, state: first.state })
      const requests = yield* TestChatModel.requests
      assert.notInclude(requests[0]?.systemPrompt, "- word (")
      assert.include(requests[2]?.systemPrompt, "- word (")
      assert.deepStrictEqual(yield* toolsOf, [
        ["read_file", "execute", "grep", "use_skill"],
        ["read_file", "leave_skill"],
        ["read_file", "execute", "grep", "use_skill"]
      ])
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { "/skills/user/pdf/SKILL.md": skill("pdf", "allowed-tools: Read\n") } }),
        TestChatModel.script([TestChatModel.calls([use("pdf")]), "done", "done"])
      ])
    )
  )

  it.effect("a round that is taken up from a checkpoint runs only offered tools", () => {
    const ask = Middleware.make({
      asks: true,
      name: "ask",
      rulings: (_run, calls) =>
        Effect.succeed(
          calls.map(({ name }) => (name === "grep" ? Ruling.ask("test", { description: "may it?" }) : undefined))
        )
    })
    const asking = Agent.make({
      name: "agent",
      prompt: "BASE",
      tools: [tool("execute"), tool("grep")],
      middleware: [ask, Skills.make({ sources })]
    })
    return Effect.gen(function* () {
      const first = yield* Agent.run(asking, "go")
      assert.strictEqual(first.stopReason, "suspended")
      const result = yield* Agent.resume(asking, {
        checkpoint: first,
        decisions: first.pending.map((request) => Approval.approve(request))
      })
      const told = answers(result.messages)
      assert.include(told[1], 'no tool "execute"')
      assert.strictEqual(told[2], "grep ran")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { "/skills/user/pdf/SKILL.md": skill("pdf", "allowed-tools: Grep\n") } }),
        TestChatModel.script([
          TestChatModel.calls([use("pdf")]),
          TestChatModel.calls([call("execute"), call("grep")]),
          "done"
        ])
      ])
    )
  })

  it.effect("the tools are the same list from round to round", () =>
    Effect.gen(function* () {
      yield* Agent.run(agent, "go")
      const requests = yield* TestChatModel.requests
      assert.strictEqual(requests[0]?.tools, requests[1]?.tools)
      assert.strictEqual(requests[2]?.tools, requests[3]?.tools)
    }).pipe(
      Effect.provide([
        TestBackend.layer({ files: { "/skills/user/pdf/SKILL.md": skill("pdf", "allowed-tools: Grep Read\n") } }),
        TestChatModel.script([
          TestChatModel.calls([call("grep")]),
          TestChatModel.calls([use("pdf")]),
          TestChatModel.calls([call("grep")]),
          "done"
        ])
      ])
    )
  )
})
