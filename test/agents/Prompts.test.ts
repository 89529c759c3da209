/** The agents of the program that change nothing: their tools and their prompts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type Tool } from "effect-deepagents"
import { AgentFile, Prompts } from "effect-deepagents/agents"
import { FetchUrl, WebSearch } from "effect-deepagents/web"
import { Git } from "effect-deepagents/workspace"

const tools: ReadonlyArray<Tool.Tool<unknown>> = [...Git.make(), WebSearch.make(), FetchUrl.make()]

describe("an agent that changes nothing", () => {
  it.effect("reads files, version control and the web, and its prompt asks for no more", () =>
    Effect.gen(function* () {
      const { planner, researcher, reviewer } = Prompts
      for (const [name, prompt] of Object.entries({ planner, researcher, reviewer })) {
        const file = { name, path: "", description: "", prompt, readOnly: true, generalPurpose: false }
        const has = Agent.toolNames(yield* AgentFile.compile<never, unknown>(file, { tools }))
        for (const reads of ["read_file", "grep", "git_diff", "web_search", "fetch_url"]) assert.isTrue(has.has(reads))
        for (const acts of ["execute", "write_file", "edit_file", "git_commit"]) assert.isFalse(has.has(acts), acts)
        assert.notMatch(prompt, /\brun\b/i)
      }
    })
  )
})
