/** What a project and its user bring, as other programs lay it out: instructions, skills, commands, agents, plugins. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { findItems, noProject } from "../../src/cli/internal/config/items.ts"
import { importsOf } from "../../src/cli/internal/project/imports.ts"
import { limits, readInstructions } from "../../src/cli/internal/project/instructions.ts"
import { fileCommands } from "../../src/cli/internal/slash/fileCommands.ts"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const putFiles = (folder: string, files: { readonly [path: string]: string }): string => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

/** A repository with files, and its real path. */
const repository = (files: { readonly [path: string]: string }): string => {
  const folder = putFiles(program.folder(), files)
  execFileSync("git", ["init", "-q"], { cwd: folder })
  return folder
}

const places = (project: string) => ({ project, config: join(project, "no-config"), data: join(project, "no-data") })
/** Reads the instructions of a project whose items are all trusted, or none. */
const readProject = (project: string, isTrusted = true) =>
  Effect.gen(function* () {
    const trusted = { items: yield* findItems(project), left: [] }
    return yield* readInstructions(places(project), isTrusted ? trusted : noProject)
  }).pipe(Effect.provide(NodeServices.layer))

const call = (name: string, input: unknown) => stream(answer([{ call: name, id: `toolu_${name}`, input }]))

/** Runs the program against a model that says this. */
const ran = Effect.fnUntraced(function* (
  cwd: string,
  replies: ReadonlyArray<Reply>,
  options: { readonly args?: ReadonlyArray<string>; readonly home?: string; readonly stdin?: string } = {}
) {
  const { requests, url } = yield* serve(...replies)
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant-test",
    XDG_DATA_HOME: join(program.folder(), "data"),
    ...(options.home === undefined ? {} : { HOME: options.home })
  }
  const done = yield* program.run(cwd, options.args ?? ["run", "Go", "--trust"], env, options.stdin ?? "")
  return { ...done, bodies: requests.map(({ body }) => body) }
}, Effect.scoped)

const systemOf = (body: { readonly system: unknown }): string => JSON.stringify(body.system)

describe("instruction files", { timeout: 60_000 }, () => {
  it.effect("of the folders above up to the repository's root, the outermost first, each once", () =>
    Effect.gen(function* () {
      const root = repository({
        "AGENTS.md": "root agents",
        "CLAUDE.md": "root claude\n@docs/style.md and `@not/this.md`",
        "docs/style.md": "the style",
        "packages/x/AGENTS.md": "x agents",
        "packages/y/AGENTS.md": "y agents"
      })
      symlinkSync("AGENTS.md", join(root, "packages/x/CLAUDE.md"))
      const { files, problems } = yield* readProject(join(root, "packages/x"))
      assert.deepEqual(
        files.map(({ path, text }) => [path.slice(root.length), text.split("\n")[0]]),
        [
          ["/AGENTS.md", "root agents"],
          ["/CLAUDE.md", "root claude"],
          ["/docs/style.md", "the style"],
          ["/packages/x/AGENTS.md", "x agents"]
        ]
      )
      assert.deepEqual(problems, [])
      assert.deepEqual((yield* readProject(join(root, "packages/x"), false)).files, [])
    })
  )

  it.effect("reports cycles, missing files, depth and imports that lead out of the project", () =>
    Effect.gen(function* () {
      const outside = putFiles(program.folder(), { "secret.md": "secret" })
      const root = repository({
        "AGENTS.md": "@a.md @gone.md @../../../../../../etc/passwd.txt @link.md @someone @types/node",
        "a.md": "@b.md",
        "b.md": "@a.md @1.md",
        ...Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`${at + 1}.md`, `n${at + 1} @${at + 2}.md`]))
      })
      symlinkSync(join(outside, "secret.md"), join(root, "link.md"))
      const { files, problems } = yield* readProject(root)
      assert.deepEqual(
        files.map(({ path }) => path.slice(root.length + 1)),
        ["AGENTS.md", "a.md", "b.md", "1.md", "2.md", "3.md"]
      )
      const all = problems.join("\n")
      assert.match(all, /AGENTS\.md: imports \S*gone\.md, which is not there/)
      assert.match(all, /b\.md: imports go in a circle: .*AGENTS\.md > .*a\.md > .*b\.md > .*a\.md/)
      assert.match(all, /imports \S*4\.md: it is more than 5 deep/)
      assert.match(all, /imports \S*link\.md, which is outside of the project/)
      assert.notInclude(all, "someone")
      assert.notInclude(all, "types/node")
    })
  )

  it.effect.runIf(isFull)("are bounded, and no pipe or binary file keeps the program waiting", () =>
    Effect.gen(function* () {
      const root = repository({ "AGENTS.md": `${"line\n".repeat(20_000)}`, "b/x": "", "CLAUDE.local.md": "a\u0000b" })
      execFileSync("sh", ["-c", "mkfifo CLAUDE.md"], { cwd: root })
      const { files, problems } = yield* readProject(root)
      assert.deepEqual(
        files.map(({ bytes, isWhole }) => [bytes, isWhole]),
        [[100_000, false]]
      )
      assert.isAtMost(files[0]!.text.length, limits.file)
      assert.match(
        problems.join("\n"),
        /CLAUDE\.md is not read: it is a pipe[^]*AGENTS\.md is cut: only its beginning is read \(100000 bytes; shorten it\)$/
      )
    })
  )

  it.effect("and commands say why they are not read: pipes, links to nothing, large files", () =>
    Effect.gen(function* () {
      const root = repository({ "commands/large.md": "x".repeat(100_001), "commands/good.md": "Go." })
      execFileSync("sh", ["-c", "mkfifo AGENTS.md commands/pipe.md; ln -s nothing CLAUDE.md"], { cwd: root })
      const { problems } = yield* readProject(root)
      assert.match(problems.join("\n"), /AGENTS\.md is not read: it is a pipe, and no regular file/)
      assert.match(problems.join("\n"), /CLAUDE\.md is not read: its link leads to nothing, where nothing is/)
      const commands = yield* fileCommands([{ folder: join(root, "commands") }], []).pipe(
        Effect.provide(NodeServices.layer)
      )
      assert.deepStrictEqual(
        commands.map(({ description, name }) => [name, /it .*$/.exec(description)?.[0] ?? description]),
        [
          ["good", "Go."],
          ["large", "it has 100001 bytes, and at most 100000 are read"],
          ["pipe", "it is a pipe, and no regular file"]
        ]
      )
      for (const { name, run } of commands.slice(1)) {
        const { message } = yield* Effect.flip(
          run(
            "",
            () => {},
            () => Effect.succeed("")
          )
        )
        assert.include(message, `commands/${name}.md: it `)
      }
    })
  )

  it.effect("look up a bounded number of words, however many a file has", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 1_500 }, (_, at) => `@${at}.md`).join(" ")
      const root = repository({ "AGENTS.md": words, "CLAUDE.md": words, "10.md": "ten", "1400.md": "late" })
      const { files, problems } = yield* readProject(root)
      assert.deepEqual(
        files.map(({ path }) => path.slice(root.length + 1)),
        ["AGENTS.md", "10.md", "CLAUDE.md"]
      )
      assert.match(problems.at(-1) ?? "", /AGENTS\.md: words with @ are not read as imports after 1000 of them$/)
    })
  )

  it.effect("outside of a repository and of the home, only the working folder counts", () =>
    Effect.gen(function* () {
      const above = putFiles(mkdtempSync(join(tmpdir(), "above-")), { "AGENTS.md": "above", "in/AGENTS.md": "inside" })
      const { files } = yield* readProject(join(above, "in"))
      assert.deepEqual(
        files.map(({ text }) => text),
        ["inside"]
      )
    })
  )

  it("finds imports in any text, and none in code", () => {
    assert.deepEqual(importsOf("see @a.md, @~/b.md (@c/d.txt). a@b.md\n```\n@no.md\n```\n`@no.md` @a.md"), [
      "a.md",
      "~/b.md"
    ])
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("@", "a", "`", "\n", "~", ".", "/", " ", "```") }), (text) => {
        for (const path of importsOf(text)) assert.isTrue(text.includes(`@${path}`) && !/\s/.test(path))
      })
    )
  })

  it.effect("are in the prompt, and a sub-folder's follow the first call below it", () =>
    Effect.gen(function* () {
      const root = repository({
        "AGENTS.md": "Write German.",
        "sub/AGENTS.md": "Write French here.",
        "sub/deep/a.txt": "A"
      })
      const home = putFiles(program.folder(), { ".claude/CLAUDE.md": "Be brief." })
      const reading = call("read_file", { file_path: join(root, "sub/deep/a.txt") })
      const again = stream(answer([{ call: "read_file", id: "toolu_2", input: { file_path: "sub/deep/a.txt" } }]))
      const { bodies, code, err } = yield* ran(root, [reading, again, say("Done.")], { home })
      assert.equal(code, 0, err)
      assert.match(
        systemOf(bodies[0]),
        /## Instructions.*CLAUDE\.md \(the user's\):\\n> Be brief.*AGENTS\.md \(the project's\):\\n> Write German/
      )
      assert.notInclude(JSON.stringify(bodies[0]), "French")
      const last = JSON.stringify(bodies[2])
      assert.equal(last.split("Write French here.").length, 2, "told once")
      assert.match(last, /<notice>\\nInstructions for [^ ]*sub\./)
      assert.equal(systemOf(bodies[0]), systemOf(bodies[2]))
    })
  )
})

describe("agents, skills, commands and plugins", { concurrent: true, timeout: 60_000 }, () => {
  it.effect("agents of files are sub-agents of the default one; a wrong file is said and left out", () =>
    Effect.gen(function* () {
      const agent = (lines: string) => `---\n${lines}\n---\nYou work.`
      const root = repository({
        ".claude/agents/rev2.md": agent("name: rev2\ndescription: Reviews twice\nmodel: opus\ntools: Read, Grep"),
        ".deepagents/agents/broken.md": agent("description: Breaks\ntools: [no_such_tool]"),
        ".deepagents/agents/loops.md": agent("description: Loops\nsubagents: [deep]"),
        "packages/x/.deepagents/agents/inner.md": agent("description: Inner one\nmodel: openai:gpt-5.4"),
        ".deepagents/agents/torn.md": "no front matter"
      })
      const { bodies, code, err } = yield* ran(join(root, "packages/x"), [say("Done.")])
      assert.equal(code, 0, err)
      const task = bodies[0].tools.find(({ name }: { readonly name: string }) => name === "task").description
      for (const name of ["researcher", "reviewer", "rev2: Reviews twice", "inner: Inner one"])
        assert.include(task, `- ${name}`)
      for (const name of ["broken", "loops", "torn"]) assert.notInclude(task, `- ${name}`)
      assert.match(err, /broken\.md: tools: there is no tool "no_such_tool".*left out/)
      assert.match(err, /loops\.md: subagents: there is no agent "deep".*left out/)
      assert.match(err, /torn\.md: should begin with a line .*left out/)
      assert.match(err, /inner\.md: there is no key for openai:gpt-5\.4; it has the model of the chat/)
    })
  )

  it.effect.runIf(isFull)(
    "skills of the project, of folders above and of the home; the nearest of one name counts",
    () =>
      Effect.gen(function* () {
        const skill = (name: string, what: string) => `---\nname: ${name}\ndescription: ${what}\n---\nDo ${what}.`
        const root = repository({
          ".claude/skills/a/SKILL.md": skill("a", "far-a"),
          ".agents/skills/b/SKILL.md": skill("b", "far-b"),
          "packages/x/.agents/skills/a/SKILL.md": skill("a", "near-a")
        })
        symlinkSync("../../.agents/skills/b", join(root, ".claude/skills/b"))
        const home = putFiles(program.folder(), { ".agents/skills/mine/SKILL.md": skill("mine", "home-mine") })
        const cwd = join(root, "packages/x")
        const uses = [
          call("use_skill", { name: "a" }),
          stream(answer([{ call: "use_skill", id: "toolu_2", input: { name: "b" } }]))
        ]
        const { bodies, code, err } = yield* ran(cwd, [...uses, say("Done.")], {
          home,
          // A skill counts as text from outside: the second one would be asked about.
          args: ["run", "Go", "--trust", "--yolo"]
        })
        assert.equal(code, 0, err)
        const system = systemOf(bodies[0])
        for (const text of ["near-a", "far-b", "home-mine"]) assert.include(system, text)
        assert.notInclude(system, "far-a")
        assert.include(JSON.stringify(bodies[2]), "Do near-a.")
        assert.include(JSON.stringify(bodies[2]), "Do far-b.")
      })
  )

  it.effect.runIf(isFull)("nested commands and plugin commands; a command in a text runs only after an approval", () =>
    Effect.gen(function* () {
      const plugin = putFiles(program.folder(), {
        ".claude-plugin/plugin.json": JSON.stringify({ name: "tidy" }),
        "commands/up.md": "Tidy up.",
        "agents/sweeper.md": "---\ndescription: Sweeps\n---\nYou sweep.",
        "skills/broom/SKILL.md": "---\nname: broom\ndescription: broom-skill\n---\nSweep."
      })
      const root = repository({
        ".claude/commands/ns/x.md": "First $1 of $ARGUMENTS:\n!`touch ran-$2; echo out-of-$1`\nEnd"
      })
      const home = putFiles(program.folder(), {
        ".config/deepagents/config.json": JSON.stringify({ plugins: [plugin] })
      })
      const stdin = "/ns:x one two !`touch never`\n1\n/tidy:up\n/quit\n"
      const { bodies, code, err, out } = yield* ran(root, [say("Done.")], { home, args: ["--trust", "--plain"], stdin })
      assert.equal(code, 0, err)
      const [first, second] = bodies.map((body) => JSON.stringify(body.messages.at(-1).content))
      assert.include(first, "First one of one two !`touch never`:\\nout-of-one\\nEnd", out)
      assert.include(second, "Tidy up.")
      assert.include(systemOf(bodies[0]), "broom-skill")
      const names = execFileSync("ls", { cwd: root, encoding: "utf8" })
      assert.equal(names.trim(), "ran-two")
      const no = yield* ran(root, [say("Done.")], {
        args: ["--trust", "--plain"],
        stdin: "/ns:x three four\n2\n/quit\n"
      })
      assert.include(JSON.stringify(no.bodies[0].messages), "echo out-of-three was not run")
      const plan = yield* ran(root, [say("Done.")], {
        args: ["--plain", "--approvals", "plan"],
        stdin: "/ns:x five six\n/quit\n"
      })
      assert.include(JSON.stringify(plan.bodies[0].messages), "was not run: This is plan mode")
      assert.equal(execFileSync("ls", { cwd: root, encoding: "utf8" }).trim(), "ran-two")
    })
  )
})
