/** Describes the language of scripts to a model. */
import type { ToolDefinition } from "../../core/ChatModel.ts"
import { cut } from "../../support/text/text.ts"
import { declareWithin } from "./declarations.ts"
import type { Lasting } from "./values.ts"

interface Named {
  readonly name: string
  readonly description: string
}

const agentLines = (agents: ReadonlyArray<Named>): ReadonlyArray<string> =>
  agents.length === 0
    ? []
    : [
        `/** Runs a sub-agent: ${agents
          .map(({ description, name }) => `"${name}": ${cut(description.replaceAll(/\s+/g, " "), 150)}`)
          .join("; ")
          .replaceAll("*/", "* /")}. With a JSON Schema the answer is data. */`,
        `declare function agent(prompt: string, options?: { agent?: ${agents.map(({ name }) => JSON.stringify(name)).join(" | ")}; session?: string; schema?: object }): Promise<any>`
      ]

const lasts: { readonly [L in Lasting]: string } = {
  thread: "keeps JSON for later scripts",
  turn: "keeps JSON for later scripts, until the next message of the user",
  call: "keeps JSON within this script"
}

/** The declarations of all that a script has, with the tools that fit into `inline` tokens. */
export const describeWorld = (
  tools: ReadonlyArray<ToolDefinition>,
  agents: ReadonlyArray<Named>,
  inline: number,
  store: Lasting = "thread"
): string => {
  const { left, lines } = declareWithin(tools, inline)
  const more = left === 0 ? "" : ` /* and ${left} more: use searchTools */`
  return [
    "declare const tools: {",
    ...lines.map((line) => `  ${line}`),
    `  [name: string]: (args: object) => Promise<string>${more}`,
    "}",
    ...agentLines(agents),
    "declare function searchTools(words: string, limit?: number): Promise<string[]> // declarations of tools that fit",
    "declare function describeTool(name: string): Promise<string>",
    "declare function parallel<A>(tasks: Array<() => Promise<A>>, options?: { concurrency?: number }): Promise<Array<A | null>> // a task that fails gives null, and is printed",
    "declare function pipeline(items: any[], ...stages: Array<(value: any, item: any, index: number) => any>): Promise<any[]> // each item on its own through all stages",
    "declare function text(...values: unknown[]): void // prints a line of the result; console.log too",
    "declare function phase(title: string): void // tells people the next part of the work",
    "declare function askUser(question: string): Promise<string>",
    `declare function store(key: string, value: unknown): Promise<void> // ${lasts[store]}`,
    "declare function load(key: string): Promise<any> // null if nothing is stored",
    "declare const budget: { spent(): Promise<{ calls: number; tokens: number; cost?: number }>; remaining(): Promise<{ calls: number; cost?: number }> }",
    "declare const args: any"
  ].join("\n")
}
