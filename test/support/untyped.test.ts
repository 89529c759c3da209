import { execFileSync } from "node:child_process"
/** Programs without types: a mistake in their options is named, and never a TypeError of the library's own code. */
import { assert, describe, it } from "@effect/vitest"

/** A sentence of each program's message. */
const wanted: { readonly [name: string]: RegExp } = {
  approval: /There is no option "approval"\. Did you mean "approvals"\?/,
  middlewares: /There is no option "middlewares"\. Did you mean "middleware"\?/,
  maxRound: /There is no option "maxRound"\. Did you mean "maxRounds"\?/,
  toolz: /There is no option "toolz"\. Did you mean "tools"\?/,
  "approvals.tool": /There is no option "approvals\.tool"\. Did you mean "tools"\?/,
  "approvals.tools.write_file.alow": /There is no option "approvals\.tools\.write_file\.alow"\. Did you mean "allow"\?/,
  "no prompt": /The option "prompt" is missing\./,
  "no options": /The option "name" is missing\./,
  threadID: /There is no option "threadID"\. Did you mean "threadId"\?/,
  "stream threadID": /There is no option "threadID"\. Did you mean "threadId"\?/,
  "resume decision": /There is no option "decision"\. Did you mean "decisions"\?/,
  "Checkpoint.resume decision": /There is no option "decision"\. Did you mean "decisions"\?/,
  "Tool.make params": /the tool "t": There is no option "params"\./,
  "Middleware.make beforModel": /the middleware "m": There is no option "beforModel"\. Did you mean "beforeModel"/,
  "files: [read_fil]": /The option "files\[0\]" must be .* Did you mean "read_file"\?/,
  "allow: [accept]": /The option "approvals\.tools\.write_file\.allow\[0\]" must be "approve"/,
  "wrong tool name": /"wite_file".* Did you mean "write_file"/,
  "tools: {…}": /The option "tools" must be an array, and is an object\./,
  "deep tools: {…}": /The option "tools" must be an array, and is an object\./,
  "tools of another library": /The option "tools\[0\]" must be a Tool, and is an object\./,
  "middleware that is none": /The option "middleware\[0\]" must be a Middleware, and is an object\./,
  "parameters: { x: 'string' }": /the tool "t": The option "parameters\.x" must be a Schema, and is a string\./,
  "bad tool name": /the tool name "a b" is not a name that models accept/,
  "two tools of one name": /two tools are named "t"; rename one of them/,
  "messages of another library": /message 1 of the input has the role "user".* Message\.human/,
  "history of another library": /a message of the history has the role "assistant".* Message\.ai/,
  "empty input": /the input is empty/,
  "input that is none": /the input is no message/,
  "output that is none": /The option "output" must be a Schema or a Standard Schema, and is an object\./,
  "subagents without agent": /Subagents: There is no option "agent"\. Did you mean "agents"\?/,
  "Budget token": /Budget: There is no option "token"\. Did you mean "tokens"\?/,
  "Budget without a limit": /Budget: There is no limit\. Give one of tokens, cost/,
  "Budget onExhausted: stop": /Budget: The option "onExhausted" must be "fail" or "finalAnswer", and is "stop"\./,
  "ToolTimeout tool": /ToolTimeout: There is no option "tool"\. Did you mean "tools"\?/,
  "ModelRetry within: 5 mins": /ModelRetry: The option "within" must be a duration, and is "5 mins"\./,
  "Guardrail onTripp": /Guardrail: There is no option "onTripp"\. Did you mean "onTrip"\?/,
  "Permissions defualt": /There is no option "defualt"\. Did you mean "default"\?/,
  "Permissions path": /There is no option "rules\[0\]\.path"\. Did you mean "paths"\?/,
  "Permissions ruling": /The option "rules\[0\]\.ruling" must be .*, and is "refus"\. Did you mean "refuse"\?/,
  "Network alow": /alow/,
  "MemoryBackend fils": /MemoryBackend: There is no option "fils"\. Did you mean "files"\?/,
  "FilesystemBackend path": /FilesystemBackend: There is no option "path"\./,
  "Bash netwrok": /Bash: There is no option "netwrok"\. Did you mean "network"\?/,
  "CompositeBackend route": /CompositeBackend\.layer: There is no option "route"\. Did you mean "routes"\?/,
  "Agent.provide of a layer that was not called": /Agent\.provide needs a layer, and got a function\. Call it:/,
  "Agent.provide of several layers": /Agent\.provide needs one layer, and got an array\. Merge its layers:/,
  "AgentPromise.make of a layer that was not called": /AgentPromise\.make needs a layer, and got a function\. Call it:/,
  "AgentPromise.make without a layer": /AgentPromise\.make needs a layer, and got none\./,
  "a thread without a journal": /needs a journal; provide SessionStore\.journal of effect-deepagents\/sessions/,
  "a run without a model": /a run needs a model; provide one, such as ChatModels\.resolve\("provider:model"\)/,
  "Chat.make buzy": /Chat\.make: There is no option "buzy"\. Did you mean "busy"\?/,
  "Branch.leave summariser": /Branch\.leave: There is no option "summariser"\. Did you mean "summarizer"\?/,
  "TraceExport.send serviceNam": /There is no option "serviceNam"\. Did you mean "serviceName"\?/,
  "AgentFile.parse claud": /There is no option "claud"\. Did you mean "claude"\?/,
  "SqliteSessions path": /SqliteSessions\.layer: There is no option "path"\./,
  "a plain key": /The option "apiKey" must be a Redacted, and is a string\. Make one with Redacted\.make\./,
  "a plain key by name": /The option "apiKey" must be a Redacted, and is a string\./,
  "a misspelt key": /There is no option "apikey"\. Did you mean "apiKey"\?/,
  "a plain key of a search": /The option "apiKey" must be a Redacted, and is a string\./,
  "a connector without options": /the tool "github_search_issues": The option "connection" is missing\./,
  "unknown provider": /opnai/,
  "a tool that throws": /bug/,
  "a tool that gives nothing": /execute of the tool "t" gave undefined/,
  "a tool whose backend nobody provides": /needs the service effect-deepagents\/Backend, .* MemoryBackend\.layer\(\)/
}

describe("programs without types", () => {
  const lines = execFileSync(
    process.execPath,
    ["--conditions=@effect-deepagents/source", `${import.meta.dirname}/untyped.mjs`],
    {
      encoding: "utf8"
    }
  )
  const told: ReadonlyArray<{ readonly name: string; readonly says: string }> = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

  it("are all here", () => {
    assert.deepStrictEqual(told.map(({ name }) => name).toSorted(), Object.keys(wanted).toSorted())
  })

  for (const { name, says } of told) {
    it(`${name}: is named`, () => {
      assert.notMatch(says, /^RAW|^NOTHING/)
      assert.notInclude(says, "sk-secret")
      assert.match(says, wanted[name] ?? /^$/)
    })
  }
})
