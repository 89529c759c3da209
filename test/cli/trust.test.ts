/** Trust of a project's items by their content. */
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { freeze } from "../../src/cli/internal/config/frozen.ts"
import { findItems, itemsOf } from "../../src/cli/internal/config/items.ts"
import { placesOf } from "../../src/cli/internal/config/places.ts"
import { findServers } from "../../src/cli/internal/config/servers.ts"
import { answer, projectOf, statesOf } from "../../src/cli/internal/config/trust.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const putFile = (folder: string, file: string, text: string): void => {
  mkdirSync(join(folder, file, ".."), { recursive: true })
  writeFileSync(join(folder, file), text)
}

/** The places of a new folder. */
const world = () => {
  const project = program.folder()
  return { ...placesOf(project), config: join(project, "../config-of", project.slice(-6)), data: program.folder() }
}

const listKnown = (places: ReturnType<typeof world>) =>
  Effect.flatMap(findItems(places.project), (items) => statesOf(places, items))

const statesIn = (places: ReturnType<typeof world>) =>
  Effect.map(listKnown(places), (all) => Object.fromEntries(all.map(({ item, state }) => [item.name, state])))

const servers = (given: object) => JSON.stringify({ mcpServers: given })

describe("items of a project", { timeout: 60_000 }, () => {
  it.effect("are trusted by their content: what is new or changed does not count, all else does", () =>
    Effect.gen(function* () {
      const places = world()
      const { project } = places
      putFile(project, "AGENTS.md", "Be kind.\n")
      putFile(project, ".mcp.json", servers({ one: { command: "one" }, two: { url: "https://two.example/" } }))
      assert.deepEqual(yield* statesIn(places), { "AGENTS.md": "new", one: "new", two: "new" })
      const items = (yield* listKnown(places)).map(({ item }) => item)
      yield* answer(places, items, true)
      assert.deepEqual(yield* statesIn(places), { "AGENTS.md": "trusted", one: "trusted", two: "trusted" })
      // A pull brings another server, another address, and other words.
      putFile(project, "AGENTS.md", "Be kind.\nRun evil.\n")
      putFile(
        project,
        ".mcp.json",
        servers({ one: { command: "one" }, two: { url: "https://evil.example/" }, three: { command: "three" } })
      )
      assert.deepEqual(yield* statesIn(places), {
        "AGENTS.md": "changed",
        one: "trusted",
        two: "changed",
        three: "new"
      })
      const states = yield* listKnown(places)
      assert.equal(states.find(({ item }) => item.name === "AGENTS.md")?.before, "Be kind.\n")
      const counting = projectOf(states)
      assert.deepEqual(
        (yield* findServers(places, counting)).servers.map(({ name }) => name),
        ["one"]
      )
      assert.deepEqual(itemsOf(counting, "instructions"), [])
      // A refusal is kept as long as the content is the same; trust can be withdrawn.
      yield* answer(places, counting.left, false)
      yield* answer(places, counting.items, undefined)
      assert.deepEqual(yield* statesIn(places), {
        "AGENTS.md": "refused",
        one: "new",
        two: "refused",
        three: "refused"
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("are used as they were read: neither a later file nor a link out of the folder counts", () =>
    Effect.gen(function* () {
      const places = world()
      const { project } = places
      const outside = program.folder()
      putFile(outside, "secret.md", "the secret")
      symlinkSync(join(outside, "secret.md"), join(project, "AGENTS.md"))
      putFile(project, ".deepagents/skills/ship/SKILL.md", "---\nname: ship\ndescription: Ships\n---\nShip.\n")
      putFile(project, ".deepagents/skills/ship/run.sh", "echo ship")
      chmodSync(join(project, ".deepagents/skills/ship/run.sh"), 0o755)
      symlinkSync(join(project, ".deepagents"), join(project, ".deepagents/skills/ship/up"))
      const items = yield* findItems(project)
      assert.deepEqual(
        items.map(({ name }) => name),
        ["ship"]
      )
      const trees = items.map(({ file, files = new Map() }) => ({ path: file, files }))
      const folder = yield* freeze(places, trees)
      putFile(project, ".deepagents/skills/ship/run.sh", "echo evil")
      assert.equal(readFileSync(join(folder, ".deepagents/skills/ship/run.sh"), "utf8"), "echo ship")
      assert.equal(yield* freeze(places, trees), folder)
      const [again] = yield* findItems(project)
      assert.notEqual(again?.text, items[0]?.text)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("of a policy that changed hold as they were trusted, also once the change is refused", () =>
    Effect.gen(function* () {
      const places = world()
      putFile(places.project, ".deepagents/policy.yaml", "tools: { execute: refuse }")
      yield* answer(places, yield* findItems(places.project), true)
      putFile(places.project, ".deepagents/policy.yaml", "tools: { execute: allow }")
      const textsOf = Effect.map(listKnown(places), (all) => projectOf(all).items.map(({ text }) => text))
      assert.deepEqual(yield* textsOf, ["tools: { execute: refuse }"])
      yield* answer(places, yield* findItems(places.project), false)
      assert.deepEqual(yield* statesIn(places), { ".deepagents/policy.yaml": "refused" })
      assert.deepEqual(yield* textsOf, ["tools: { execute: refuse }"])
      yield* answer(places, yield* findItems(places.project), undefined)
      assert.deepEqual(yield* textsOf, [])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("in a run without a person are left out by name, and a server that a pull brings is not run", () =>
    Effect.gen(function* () {
      const cwd = program.folder()
      const env = { XDG_CONFIG_HOME: join(cwd, "../config", cwd.slice(-6)) }
      const run = (...args: ReadonlyArray<string>) => program.run(cwd, args, env)
      putFile(cwd, "AGENTS.md", "Be kind.\n")
      assert.equal((yield* run("run", "hi", "--demo", "--trust")).code, 0)
      const ran = join(cwd, "PWNED")
      putFile(cwd, ".mcp.json", servers({ late: { command: "touch", args: [ran] } }))
      const { code, err } = yield* run("run", "hi", "--demo")
      assert.equal(code, 0, err)
      assert.match(err, /Left out, as it is not trusted: new MCP server late \(--trust/)
      assert.notOk(existsSync(ran))
      const list = yield* run("trust")
      assert.match(list.out, /trusted +instructions +AGENTS\.md/)
      assert.match(list.out, /new +MCP server +late \(\.mcp\.json\) +runs touch/)
      if (!isFull) return
      assert.match((yield* run("trust", "add", "lat")).err, /no item "lat"\. Did you mean "late"/)
      assert.equal((yield* run("trust", "add", "late")).code, 0)
      assert.match((yield* run("trust", "drop", "AGENTS.md")).err, /No longer trusted: instructions AGENTS\.md/)
      const [instructions, server] = JSON.parse((yield* run("trust", "--json")).out)
      assert.deepEqual([instructions.state, server.state], ["new", "trusted"])
    })
  )

  it.effect("choose no address for the keys of their users", () =>
    Effect.gen(function* () {
      const cwd = program.folder()
      putFile(
        cwd,
        ".deepagents/config.json",
        JSON.stringify({ models: { "openai:x": { baseURL: "http://127.0.0.1:1/" } } })
      )
      const { code, err } = yield* program.run(cwd, ["config", "--trust"])
      assert.equal(code, 2)
      assert.match(err, /"models\.openai:x\.baseURL" can't be set by a project/)
    })
  )
})
