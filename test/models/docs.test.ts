import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import facts from "../../src/models/internal/facts/models.json" with { type: "json" }
import { type Server, servers, variableOf } from "../../src/models/internal/servers/servers.ts"

const page = readFileSync(new URL("../../docs/models.md", import.meta.url), "utf8")

const thinking: { readonly [Way in Server["ways"]["thinking"]]: string } = {
  effort: "`reasoning_effort`",
  google: "`reasoning_effort`, or a budget",
  reasoning: "`reasoning`",
  toggle: "`reasoning.enabled`, `reasoning_effort`",
  deepseek: "`thinking.type`, `reasoning_effort`",
  template: "`chat_template_kwargs`, `reasoning_effort`"
}

const models: { readonly [provider: string]: object } = facts.providers

const cellsOf = ({ key, name, ways }: Server): ReadonlyArray<string> => [
  `\`${name}\``,
  key === undefined ? `\`${variableOf(name, "API_KEY")}\`, if set` : `\`${key}\``,
  name === "openrouter" ? "of their makers" : String(Object.keys(models[name] ?? {}).length),
  thinking[ways.thinking],
  ways.native === undefined
    ? "a tool"
    : `itself (${ways.native.source.includes("gemini") ? "Gemini 3 on" : "Grok 4 on"}), else a tool`,
  [...(ways.documents === "none" ? [] : ["PDF"]), ...(ways.audio ? ["wav, mp3"] : [])].join(", ") || "none"
]

describe("docs/models.md", () => {
  it("lists the known facts of each server", () => {
    const [, table = ""] = /<!-- servers -->\n([\s\S]*?)<!-- \/servers -->/.exec(page) ?? []
    const rows = table
      .trim()
      .split("\n")
      .map((row) =>
        row
          .split("|")
          .slice(1, -1)
          .map((cell) => cell.trim())
      )
    const wanted = [
      ["name", "key", "models known", "thinking", "an answer in a schema", "files beside text and pictures"],
      ...servers.map(cellsOf)
    ]
    assert.deepStrictEqual(
      rows.filter(([first]) => !/^-+$/.test(first ?? "")),
      wanted,
      `\n${wanted.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`
    )
  })
})
