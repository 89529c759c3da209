import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type AgentState, Backend } from "effect-deepagents"
import { ApplyPatch, FileTools } from "effect-deepagents/backends"
import { AgentTest, TestBackend, TestChatModel } from "effect-deepagents/testing"
import { after, type Call, converse, edit, elsewhere, eventsOf, readCall, turns, write } from "./converse.ts"

/** What people are shown of these calls. */
const detailsOf = (files: Readonly<Record<string, string>>, rounds: ReadonlyArray<ReadonlyArray<Call>>) =>
  AgentTest.events(Agent.make({ name: "agent", prompt: "You are tested.", tools: FileTools.make() }), "Go").pipe(
    Effect.provide([TestChatModel.script(turns(rounds)), TestBackend.layer({ files })]),
    Effect.map((events) => eventsOf(events, "ToolCompleted").map((event) => event.details))
  )

describe("FileTools", () => {
  describe("which tools there are", () => {
    it("all of the files, in this order, and execute on demand", () => {
      const names = ["ls", "read_file", "write_file", "edit_file", "delete_file", "move_file", "glob", "grep"]
      assert.deepStrictEqual(
        FileTools.make().map((tool) => tool.name),
        names
      )
      assert.deepStrictEqual(
        FileTools.make({ execute: true }).map((tool) => tool.name),
        [...names, "execute"]
      )
    })

    it("only the wanted ones; edit_file brings read_file along", () => {
      const names = (only: FileTools.Options["only"]) => FileTools.make({ only }).map((tool) => tool.name)
      assert.deepStrictEqual(names(["grep", "ls"]), ["ls", "grep"])
      assert.deepStrictEqual(names(["edit_file"]), ["read_file", "edit_file"])
      assert.deepStrictEqual(names([]), [])
    })

    it("no receiver changes the shared tools", () => {
      const given = FileTools.make() as Array<ReturnType<typeof FileTools.make>[number]>
      const [ls] = given.splice(0, 8)
      const again = FileTools.make()
      assert.strictEqual(again.length, 8)
      assert.strictEqual(again[0], ls)
    })

    it("declares the effects of each", () => {
      const flags = FileTools.make({ execute: true }).map(({ annotations, name }) => {
        const set = Object.entries(annotations).flatMap(([flag, value]) => (value === true ? [flag] : []))
        return [name, set.sort().join(" ")]
      })
      assert.deepStrictEqual(Object.fromEntries(flags), {
        ls: "idempotent readOnly",
        read_file: "idempotent paged readOnly",
        write_file: "destructive editsFiles idempotent",
        edit_file: "destructive editsFiles",
        delete_file: "destructive idempotent",
        move_file: "editsFiles",
        glob: "idempotent readOnly",
        grep: "idempotent readOnly",
        execute: "destructive openWorld runsCommands volatile"
      })
    })

    it("no description names a tool that is not there", () => {
      for (const name of ["ls", "read_file", "write_file", "glob", "grep"] as const) {
        for (const tool of FileTools.make({ only: [name] })) {
          const others = ["read_file", "write_file", "edit_file", "delete_file", "move_file", "glob"].filter(
            (other) => other !== name
          )
          for (const other of others) assert.notMatch(tool.description, new RegExp(`\\b${other}\\b`), name)
        }
      }
    })
  })

  describe("no change of unread files", () => {
    it.effect("an edit says to read first, and works after that", () =>
      Effect.gen(function* () {
        const { answers, files } = yield* after({ "/a.txt": "one two" }, [
          [edit("a.txt", "one", "1")],
          [readCall("/a.txt")],
          [edit("./a.txt", "one", "1")]
        ])
        assert.deepStrictEqual(
          answers.map((answer) => answer.isError),
          [true, false, false]
        )
        assert.include(answers[0]?.text, "Read it with read_file first, then edit it.")
        assert.strictEqual(files["/a.txt"], "1 two")
      })
    )

    it.effect("a file is not replaced unread; a new one is just written", () =>
      Effect.gen(function* () {
        const { answers, files } = yield* after({ "/a.txt": "precious" }, [
          [write("a.txt", "new"), write("b.txt", "new\n")],
          [readCall("a.txt")],
          [write("a.txt", "newer")]
        ])
        assert.include(answers[0]?.text, "Read it with read_file first, then write it.")
        assert.strictEqual(answers[1]?.text, "Wrote /b.txt, a new file of 1 line.")
        assert.strictEqual(answers[3]?.text, "Replaced /a.txt: 1 line.")
        assert.deepStrictEqual(files, { "/a.txt": "newer", "/b.txt": "new\n" })
      })
    )

    it.effect("who can't read is told so", () =>
      Effect.gen(function* () {
        const { answers, files } = yield* after(
          { "/a.txt": "precious" },
          [[write("a.txt", "new")], [write("b.txt", "1")], [write("b.txt", "2")]],
          { tools: FileTools.make({ only: ["write_file"] }) }
        )
        assert.include(answers[0]?.text, "Choose another path.")
        assert.deepStrictEqual(files, { "/a.txt": "precious", "/b.txt": "2" })
      })
    )

    it.effect("a part counts as read, and a look at no line does not", () =>
      Effect.gen(function* () {
        const { answers } = yield* after({ "/a.txt": "one\ntwo\nthree", "/empty": "" }, [
          [readCall("a.txt", { limit: 0 }), readCall("a.txt", { offset: 9 })],
          [edit("a.txt", "one", "1")],
          [readCall("a.txt", { offset: "2", limit: 1 }), readCall("empty")],
          [edit("a.txt", "one", "1"), write("empty", "x")]
        ])
        assert.deepStrictEqual(
          answers.map((answer) => answer.isError),
          [false, false, true, false, false, false, false]
        )
      })
    )

    it.effect("counts files that the agent wrote or patched as read", () =>
      Effect.gen(function* () {
        const patch = "*** Begin Patch\n*** Add File: p.txt\n+x\n*** End Patch"
        const { answers, files } = yield* after(
          {},
          [
            [write("a.txt", "one"), ["apply_patch", { input: patch }]],
            [edit("a.txt", "one", "two"), edit("p.txt", "x", "y")],
            [edit("a.txt", "two", "three"), write("p.txt", "z")]
          ],
          { tools: [...FileTools.make(), ApplyPatch.make()] }
        )
        assert.isFalse(answers.some((answer) => answer.isError))
        assert.deepStrictEqual(files, { "/a.txt": "three", "/p.txt": "z" })
      })
    )

    it.effect("a file that was only moved was not seen by that", () =>
      Effect.gen(function* () {
        const patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"
        const { answers } = yield* after(
          { "/a": "one", "/c": "one" },
          [
            [
              ["apply_patch", { input: patch }],
              ["move_file", { source: "c", destination: "d" }]
            ],
            [edit("b", "one", "1"), edit("d", "one", "1")]
          ],
          { tools: [...FileTools.make(), ApplyPatch.make()] }
        )
        for (const answer of answers.slice(2)) assert.include(answer.text, "you have not read it")
      })
    )

    it.effect("a change by others is a conflict, until the file is read again", () =>
      Effect.gen(function* () {
        const other = yield* Effect.map(Backend.Backend, (backend) => ({
          tools: [...FileTools.make(), elsewhere(backend.write("/a.txt", "one, changed"))]
        }))
        const { answers } = yield* converse(
          [
            [readCall("a.txt")],
            [["elsewhere", {}]],
            [edit("a.txt", "one", "1"), write("a.txt", "x")],
            [readCall("a.txt")],
            [edit("a.txt", "one", "1")]
          ],
          other
        )
        assert.deepStrictEqual(
          answers.map((answer) => answer.isError),
          [false, false, true, true, false, false]
        )
        for (const answer of answers.slice(2, 4))
          assert.include(answer.text, "changed since it was read; read it again")
        assert.strictEqual((yield* TestBackend.files)["/a.txt"], "1, changed")
      }).pipe(Effect.provide(TestBackend.layer({ files: { "/a.txt": "one" } })))
    )

    it.effect("the record goes with a moved file, alone or in its directory, and goes away with a deleted one", () =>
      Effect.gen(function* () {
        const { answers, files } = yield* after({ "/d/a.txt": "one", "/d/b.txt": "one", "/dx": "one" }, [
          [readCall("d/a.txt"), readCall("d/b.txt"), readCall("dx")],
          [["move_file", { source: "d/a.txt", destination: "a.txt" }]],
          [["move_file", { source: "d", destination: "e" }]],
          [edit("a.txt", "one", "1"), edit("e/b.txt", "one", "1"), edit("dx", "one", "1")],
          [
            ["delete_file", { file_path: "e", recursive: true }],
            ["delete_file", { file_path: "a.txt" }]
          ],
          [write("e/b.txt", "new"), write("a.txt", "new")]
        ])
        assert.deepStrictEqual(
          answers.filter((answer) => answer.isError).map((answer) => answer.text),
          []
        )
        assert.deepStrictEqual(files, { "/a.txt": "new", "/dx": "1", "/e/b.txt": "new" })
      })
    )

    it.effect("the record goes with a move to a path with another version, unless the file was changed", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        // As a file system has them: made of more than the content.
        const renameVersion = <A extends { readonly path: string; readonly version: string }>(file: A): A => ({
          ...file,
          version: `${file.path} ${file.version}`
        })
        const plain = <A extends { readonly version?: string | undefined }>(options: A | undefined): A | undefined =>
          options?.version === undefined ? options : { ...options, version: options.version.split(" ")[1] ?? "" }
        const files: Backend.Service = {
          ...backend,
          read: (path, window) => Effect.map(backend.read(path, window), renameVersion),
          write: (path, content, options) => Effect.map(backend.write(path, content, plain(options)), renameVersion),
          edit: (path, edits, options) => Effect.map(backend.edit(path, edits, plain(options)), renameVersion)
        }
        const patch = "*** Begin Patch\n*** Update File: c\n*** Move to: d\n@@\n-one\n+two\n*** End Patch"
        const { answers } = yield* Effect.provideService(
          converse(
            [
              [readCall("a"), readCall("b"), ["apply_patch", { input: patch }]],
              [["elsewhere", {}]],
              [
                ["move_file", { source: "a", destination: "x" }],
                ["move_file", { source: "b", destination: "y" }]
              ],
              [edit("x", "one", "1"), edit("y", "one", "1"), edit("d", "two", "2")]
            ],
            { tools: [...FileTools.make(), ApplyPatch.make(), elsewhere(backend.write("/b", "one, changed"))] }
          ),
          Backend.Backend,
          files
        )
        assert.deepStrictEqual(
          answers.slice(-3).map((answer) => answer.isError),
          [false, true, false]
        )
        assert.include(answers.at(-2)?.text, "changed since")
      }).pipe(Effect.provide(TestBackend.layer({ files: { "/a": "one", "/b": "one", "/c": "one" } })))
    )

    for (const reason of ["Conflict", "NotFound"] as const) {
      it.effect(`writes a file anew that others deleted, if that is a ${reason}`, () =>
        Effect.gen(function* () {
          const backend = yield* Backend.Backend
          const { answers } = yield* converse([[readCall("a.txt")], [["elsewhere", {}]], [write("a.txt", "new")]], {
            tools: [...FileTools.make(), elsewhere(backend.delete("/a.txt"))]
          })
          assert.isFalse(answers.some((answer) => answer.isError))
          assert.strictEqual((yield* TestBackend.files)["/a.txt"], "new")
        }).pipe(
          Effect.provide(
            TestBackend.layer({
              files: { "/a.txt": "one" },
              fail: (request) =>
                request.operation === "write" && request.options?.version !== undefined ? { _tag: reason } : undefined
            })
          )
        )
      )
    }

    it.effect("the record is in the state: a resumed run has it, another agent does not", () =>
      Effect.gen(function* () {
        const first = yield* converse([[readCall("a.txt"), readCall("b.txt")]])
        const resumed = yield* converse([[edit("a.txt", "one", "1")]], {
          state: JSON.parse(JSON.stringify(first.state)) as AgentState.Snapshot
        })
        assert.isFalse(resumed.answers[0]?.isError)
        const other = yield* converse([[edit("b.txt", "two", "2")]])
        assert.isTrue(other.answers[0]?.isError)
        const size = Object.entries(first.state).filter(([, value]) => JSON.stringify(value).length > 64).length
        assert.strictEqual(size, 0)
      }).pipe(Effect.provide(TestBackend.layer({ files: { "/a.txt": "one", "/b.txt": "two" } })))
    )

    it.effect("a sub-agent has none of its parent's records", () =>
      Effect.gen(function* () {
        const child = Agent.make({ name: "child", description: "Edits", prompt: "Edit.", tools: FileTools.make() })
        const parent = Agent.make({
          name: "parent",
          prompt: "Delegate.",
          tools: [...FileTools.make(), Agent.asTool(child)]
        })
        const events = yield* AgentTest.events(parent, "Go")
        const failed = eventsOf(events, "ToolFailed")
        assert.deepStrictEqual(
          failed.map((event) => [event.path.join("/"), event.toolName]),
          [["parent/child", "edit_file"]]
        )
        assert.strictEqual((yield* TestBackend.files)["/a.txt"], "1")
      }).pipe(
        Effect.provide([
          TestBackend.layer({ files: { "/a.txt": "one" } }),
          TestChatModel.script([
            ...turns([[readCall("a.txt")], [["child", { task: "Edit" }]]]).slice(0, 2),
            ...turns([[edit("a.txt", "one", "2")]]),
            ...turns([[edit("a.txt", "one", "1")]])
          ])
        ])
      )
    )
  })

  describe("calls of one round on one file", () => {
    it.effect("all of them count: no edit is lost, and none is a conflict", () =>
      Effect.gen(function* () {
        const lines = Array.from({ length: 20 }, (_, index) => `line ${index};`)
        const backend = yield* Backend.Backend
        yield* backend.write("/a.txt", lines.join("\n"))
        const slowly = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.andThen(Effect.yieldNow, Effect.tap(effect, Effect.yieldNow))
        const slow: Backend.Service = {
          ...backend,
          read: (path, window) => slowly(backend.read(path, window)),
          edit: (path, replacements, options) => slowly(backend.edit(path, replacements, options))
        }
        const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-LINE 5;\n+five\n*** End Patch"
        const { answers } = yield* Effect.provideService(
          converse(
            [
              [readCall("a.txt")],
              lines.map((line, index) => edit("a.txt", line, `LINE ${index};`)),
              [
                readCall("a.txt"),
                edit("a.txt", "LINE 3;", "three"),
                readCall("a.txt"),
                edit("a.txt", "LINE 4;", "four")
              ],
              [edit("a.txt", "LINE 6;", "six"), ["apply_patch", { input: patch }], edit("a.txt", "LINE 7;", "seven")]
            ],
            { tools: [...FileTools.make(), ApplyPatch.make()] }
          ),
          Backend.Backend,
          slow
        )
        assert.deepStrictEqual(
          answers.filter((answer) => answer.isError),
          []
        )
        const words = new Map([
          [3, "three"],
          [4, "four"],
          [5, "five"],
          [6, "six"],
          [7, "seven"]
        ])
        const expected = lines.map((_, index) => words.get(index) ?? `LINE ${index};`)
        assert.strictEqual((yield* TestBackend.files)["/a.txt"], expected.join("\n"))
      }).pipe(Effect.provide(TestBackend.layer()))
    )
  })

  describe("the results of reading", () => {
    it.effect("text has line numbers and says how to go on", () =>
      Effect.gen(function* () {
        const { answers } = yield* after({ "/a.txt": "one\ntwo\nthree\n", "/empty": "" }, [
          [
            readCall("a.txt"),
            readCall("a.txt", { offset: 2, limit: 1 }),
            readCall("empty"),
            readCall("a.txt", { offset: 7 })
          ]
        ])
        assert.strictEqual(answers[0]?.text, "   1\tone\n   2\ttwo\n   3\tthree")
        assert.strictEqual(answers[1]?.text, "   2\ttwo\n[line 2 of 3; go on with offset 3]")
        assert.strictEqual(answers[2]?.text, "[the file is empty]")
        assert.include(answers[3]?.text, "past the end; the file has 3 lines")
      })
    )

    it.effect("bounds a result, and goes on at its end, in lines and within one", () =>
      Effect.gen(function* () {
        const long = "x".repeat(150_000)
        const many = Array.from({ length: 9_000 }, (_, index) => `line ${index + 1}`).join("\n")
        const { answers } = yield* after({ "/long": long, "/many": many }, [
          [readCall("long"), readCall("many", { limit: 1_000_000 })],
          [readCall("long", { column: 55_000 }), readCall("many", { offset: 2_001 })]
        ])
        for (const answer of answers) assert.isBelow(answer.text.length, 61_000)
        assert.include(answers[0]?.text, "go on with offset 1 and column 55000")
        assert.include(answers[1]?.text, "lines 1–2000 of 9000; go on with offset 2001")
        assert.include(answers[2]?.text, "go on with offset 1 and column 110000")
        assert.include(answers[3]?.text, "2001\tline 2001\n")
      })
    )

    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0])
    const pdf = new Uint8Array([0x25, 0x50, 0x44, 0x46, 0x2d, 0, 0xff])

    it.effect("images and PDFs are shown to a model that can see them", () =>
      Effect.gen(function* () {
        const { answers } = yield* after({ "/a.png": png, "/d/b.pdf": pdf }, [[readCall("a.png"), readCall("d/b.pdf")]])
        assert.deepStrictEqual(answers[0]?.content[1], {
          type: "image",
          source: { kind: "base64", data: Buffer.from(png).toString("base64"), mimeType: "image/png" }
        })
        assert.deepStrictEqual(answers[1]?.content[1], {
          type: "file",
          name: "b.pdf",
          source: { kind: "base64", data: Buffer.from(pdf).toString("base64"), mimeType: "application/pdf" }
        })
        assert.include(answers[0]?.text, "image/png, 12 bytes")
      })
    )

    it.effect("others are told of them, and nothing is downloaded", () =>
      Effect.gen(function* () {
        const { answers, requests } = yield* after(
          { "/a.png": png, "/b.pdf": pdf, "/c.zip": new Uint8Array([0x50, 0x4b, 3, 4, 0]) },
          [[readCall("a.png"), readCall("b.pdf"), readCall("c.zip")]],
          { supportsVision: false }
        )
        assert.include(answers[0]?.text, "image/png, 12 bytes. This model can't see images.")
        assert.include(answers[1]?.text, "application/pdf, 7 bytes. This model can't see PDFs.")
        assert.include(answers[2]?.text, "5 bytes. It can't be shown.")
        assert.isFalse(requests.some((request) => request.operation === "download"))
      })
    )

    it.effect("refuses a file that is too large, with the limit", () =>
      Effect.gen(function* () {
        const large = new Uint8Array(3_750_001)
        large.set(png)
        const { answers, requests } = yield* after({ "/a.png": large }, [[readCall("a.png")]])
        assert.include(answers[0]?.text, "3750001 bytes. It is too large to be shown: the limit is 3.75 MB.")
        assert.isFalse(requests.some((request) => request.operation === "download"))
      })
    )
  })

  describe("the results of searching", () => {
    it.effect("listings, globs and searches, with the right requests to the backend", () =>
      Effect.gen(function* () {
        const { answers, requests } = yield* after({ "/src/a.ts": "let x = 1\nlet y", "/b.md": "x" }, [
          [
            ["ls", {}],
            ["glob", { pattern: "*.ts", max_count: "5" }],
            ["grep", { pattern: "let" }],
            [
              "grep",
              {
                pattern: "LET Y",
                path: "/src",
                glob: "*.ts",
                output_mode: "content",
                regex: "true",
                ignore_case: true,
                context: 99,
                max_count: 1_000_000,
                include_ignored: true
              }
            ],
            ["grep", { pattern: "let", output_mode: "count" }]
          ]
        ])
        assert.strictEqual(answers[0]?.text, "/b.md (1 bytes)\n/src/")
        assert.strictEqual(answers[1]?.text, "/src/a.ts")
        assert.strictEqual(answers[2]?.text, "/src/a.ts")
        assert.strictEqual(answers[3]?.text, "/src/a.ts:\n  1- let x = 1\n  2: let y")
        assert.strictEqual(answers[4]?.text, "/src/a.ts: 2")
        const queries = requests.flatMap((request) => (request.operation === "grep" ? [request.query] : []))
        assert.deepStrictEqual(queries[1], {
          pattern: "LET Y",
          path: "/src",
          glob: "*.ts",
          mode: "content",
          regex: true,
          ignoreCase: true,
          context: 20,
          limit: 10_000,
          ignored: true
        })
      })
    )

    it.effect("a listing of many files is bounded, and says how to get the rest", () =>
      Effect.gen(function* () {
        const files = Object.fromEntries(
          Array.from({ length: 5_000 }, (_, index) => [`/${"n".repeat(50)}${index}`, ""])
        )
        const { answers } = yield* after(files, [[["ls", {}]], [["glob", { pattern: "*" }]]])
        assert.isBelow(answers[0]?.text.length ?? 0, 61_000)
        assert.match(answers[0]?.text ?? "", /\[\d+ of 5000 are shown; .*glob/)
        assert.include(answers[1]?.text, "there may be more: the limit was reached")
      })
    )
  })

  describe("failures", () => {
    it.effect("tell the next step", () =>
      Effect.gen(function* () {
        const { answers } = yield* after({ "/d/a.txt": "x x", "/b.txt": "b" }, [
          [readCall("nowhere"), readCall("d"), readCall("../x"), readCall("d/a.txt"), ["ls", { path: "b.txt" }]],
          [
            edit("d/a.txt", "x", "y"),
            edit("d/a.txt", "z", "y"),
            edit("nowhere", "x", "y"),
            ["delete_file", { file_path: "d" }],
            ["move_file", { source: "b.txt", destination: "d/a.txt" }],
            ["grep", { pattern: "(", regex: true }]
          ]
        ])
        const texts = answers.filter((answer) => answer.isError).map((answer) => answer.text)
        const expected = [
          "no such file or directory. Find the path with ls or glob.",
          "this is a directory, not a file. To see what is in it, use ls.",
          "leads out of the root",
          "not a directory. Find the path with",
          "there 2 times",
          "is not in the file",
          "no such file or directory",
          "set recursive to true",
          "choose another path",
          "is not valid"
        ]
        assert.strictEqual(texts.length, expected.length, texts.join("\n"))
        for (const [index, part] of expected.entries()) assert.include(texts[index], part)
        for (const text of texts) assert.notInclude(text, "BackendError")
      })
    )

    it.effect("a search that took too long is a time-out, and says to narrow it down", () =>
      Effect.gen(function* () {
        const agent = Agent.make({ name: "agent", prompt: "You are tested.", tools: FileTools.make() })
        const [failed] = eventsOf(yield* AgentTest.events(agent, "Go"), "ToolFailed")
        assert.strictEqual(failed?.reason, "TimedOut")
        assert.include(failed?.text, "not done within 15000 ms; narrow it down")
      }).pipe(
        Effect.provide([
          TestChatModel.script(turns([[["grep", { pattern: "x" }]]])),
          TestBackend.layer({ fail: () => ({ _tag: "TimedOut", limit: 15_000 }) })
        ])
      )
    )

    it.effect("names no tool that is not there", () =>
      Effect.gen(function* () {
        const { answers } = yield* after({}, [[readCall("nowhere")]], {
          tools: FileTools.make({ only: ["read_file"] })
        })
        assert.include(answers[0]?.text, "Check the path.")
        assert.notInclude(answers[0]?.text, "glob")
      })
    )
  })

  describe("a person's view", () => {
    it.effect("a diff of written and edited text, with the lines of the file", () =>
      Effect.gen(function* () {
        const details = yield* detailsOf({ "/a.txt": "1\r\n2\r\nx\r\n4\r\nx\r\n" }, [
          [write("new.txt", "a\nb")],
          [readCall("a.txt")],
          [edit("a.txt", "x", "y\nz", { replace_all: true })],
          [write("a.txt", "1\n2\n3\n")],
          [["move_file", { source: "a.txt", destination: "c.txt" }]],
          [["delete_file", { file_path: "c.txt" }]],
          [
            ["ls", {}],
            ["grep", { pattern: "a", output_mode: "content" }]
          ]
        ])
        assert.deepStrictEqual(details, [
          {
            kind: "write",
            path: "/new.txt",
            created: true,
            diff: "@@ -0,0 +1,2 @@\n+a\n+b\n",
            added: 2,
            removed: 0,
            truncated: false
          },
          { kind: "read", path: "/a.txt", startLine: 1, endLine: 5, totalLines: 5 },
          {
            kind: "edit",
            path: "/a.txt",
            replaced: 2,
            lines: [3, 6],
            diff: "@@ -3 +3,2 @@\n-x\n+y\n+z\n@@ -5 +6,2 @@\n-x\n+y\n+z\n",
            added: 4,
            removed: 2,
            truncated: false
          },
          {
            kind: "write",
            path: "/a.txt",
            created: false,
            diff: "@@ -1,7 +1,3 @@\n 1\n 2\n-y\n-z\n-4\n-y\n-z\n+3\n",
            added: 1,
            removed: 5,
            truncated: false
          },
          { kind: "move", from: "/a.txt", to: "/c.txt" },
          { kind: "delete", path: "/c.txt" },
          { kind: "listing", path: "/", count: 1, entries: [{ path: "/new.txt", kind: "file", size: 3 }] },
          { kind: "matches", count: 1, files: [{ path: "/new.txt", count: 1, lines: [{ line: 1, text: "a" }] }] }
        ])
      })
    )

    it.effect("details of an edit of many places are bounded", () =>
      Effect.gen(function* () {
        const [, details] = yield* detailsOf({}, [
          [write("a.txt", "x\n".repeat(50_000))],
          [edit("a.txt", "x", "y".repeat(100), { replace_all: true })]
        ])
        assert.deepNestedInclude(details, { kind: "edit", replaced: 50_000, added: 50_000, truncated: true })
        assert.isBelow(JSON.stringify(details).length, 30_000)
      })
    )

    it.effect("a diff of a large change is bounded", () =>
      Effect.gen(function* () {
        const lines = (word: string) =>
          Array.from({ length: 1_500 }, (_, index) => `${word} ${index}`.repeat(9)).join("\n")
        const [, details] = yield* detailsOf({}, [[write("a.txt", lines("a"))], [write("a.txt", lines("b"))]])
        assert.deepNestedInclude(details, { kind: "write", truncated: true, added: 1_500, removed: 1_500 })
        assert.isBelow(JSON.stringify(details).length, 25_000)
      })
    )
  })
})
