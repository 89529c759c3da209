import assert from "node:assert/strict"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { Effect, Layer } from "effect"
import { Agent, Approval } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import { agent } from "../src/agent.ts"

test("it asks before it changes a file", async () => {
  const root = mkdtempSync(join(tmpdir(), "coder-"))
  writeFileSync(join(root, "a.txt"), "one\n")
  const asked: Array<string> = []
  const approvals = Layer.succeed(Approval.Approvals, {
    decide: (request) => Effect.sync(() => (asked.push(request.toolName), Approval.approve(request)))
  })
  const model = TestChatModel.script([
    TestChatModel.calls([{ name: "read_file", arguments: { file_path: "/a.txt" } }]),
    TestChatModel.calls([
      { name: "edit_file", arguments: { file_path: "/a.txt", old_string: "one", new_string: "two" } }
    ]),
    "It says two now."
  ])
  const run = Effect.provide(Agent.run(agent, "Make it two."), [model, approvals, LocalShell.layer({ root })])
  assert.equal((await Effect.runPromise(run)).text, "It says two now.")
  assert.deepEqual(asked, ["edit_file"])
  assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "two\n")
})
