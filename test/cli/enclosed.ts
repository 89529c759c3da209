/** A project in a repository, a home with a secret beside it, and a scripted model for the program there. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { answer, type Reply, serve, stream } from "../models/servers/anthropic.ts"
import type { build } from "./built.ts"

export const canary = "CANARY-9a1f"

/** Makes the place, with the settings of the person. */
export const world = Effect.fnUntraced(function* (
  program: ReturnType<typeof build>,
  settings: { readonly [name: string]: unknown },
  ...replies: ReadonlyArray<Reply>
) {
  const { requests, url } = yield* serve(...replies)
  const place = program.folder()
  const [cwd, home] = [join(place, "shop"), join(place, "home")]
  for (const folder of [cwd, join(home, ".config/deepagents"), join(home, ".ssh")])
    mkdirSync(folder, { recursive: true })
  writeFileSync(join(home, ".config/deepagents/config.json"), JSON.stringify(settings))
  writeFileSync(join(home, ".gitconfig"), "[user]\n name = Ada\n email = ada@shop.example\n")
  writeFileSync(join(home, ".ssh/id"), canary)
  writeFileSync(
    join(cwd, "package.json"),
    JSON.stringify({ name: "shop", private: true, type: "module", scripts: { test: "node --test" } })
  )
  writeFileSync(
    join(cwd, "sum.test.js"),
    'import test from "node:test"\nimport assert from "node:assert"\ntest("sum", () => assert.equal(1 + 1, 2))\n'
  )
  execFileSync("git", ["init", "-q"], { cwd })
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant-test",
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(place, "data")
  }
  /** The results of the calls, as the model got them. */
  const results = () =>
    requests.map(({ body }) => JSON.stringify((body.messages as ReadonlyArray<unknown>).at(-1))).slice(1)
  return {
    cwd,
    home,
    requests,
    results,
    run: (args: ReadonlyArray<string>, more = {}, folder = cwd) => program.run(folder, args, { ...env, ...more }, "")
  }
})

export const call = (command: string): Reply => stream(answer([{ call: "execute", id: "toolu_1", input: { command } }]))
