/** Conversations for tests of file tools: the results that a calling model gets, round by round. */
import { Effect } from "effect"
import {
  Agent,
  type AgentEvent,
  type AgentState,
  type Backend,
  type BackendError,
  type Content,
  type Json,
  Message,
  Tool,
  type ToolContext
} from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { TestBackend, TestChatModel } from "effect-deepagents/testing"

export type Call = readonly [name: string, args: Json.JsonObject]

export interface Answer {
  readonly tool: string
  readonly text: string
  readonly isError: boolean
  readonly content: ReadonlyArray<Content.Block>
}

export interface Options<R> {
  readonly tools?: ReadonlyArray<Tool.Tool<R | ToolContext.ToolContext>>
  readonly state?: AgentState.Snapshot
  readonly supportsVision?: boolean
}

export const turns = (rounds: ReadonlyArray<ReadonlyArray<Call>>) => [
  ...rounds.map((calls) => TestChatModel.calls(calls.map(([name, args]) => ({ name, arguments: args })))),
  "done"
]

/** The results that a calling model gets, round by round. */
export const converse = <R = Backend.Backend>(rounds: ReadonlyArray<ReadonlyArray<Call>>, options: Options<R> = {}) => {
  const agent = Agent.make({
    name: "agent",
    prompt: "You are tested.",
    tools: options.tools ?? (FileTools.make() as ReadonlyArray<Tool.Tool<R | ToolContext.ToolContext>>)
  })
  return Agent.run(agent, "Go", options.state === undefined ? {} : { state: options.state }).pipe(
    Effect.provide(TestChatModel.script(turns(rounds), { supportsVision: options.supportsVision ?? true })),
    Effect.map((result) => ({
      state: result.state,
      answers: result.messages.flatMap((message): ReadonlyArray<Answer> =>
        message.role === "tool"
          ? [
              {
                tool: message.toolName,
                text: Message.text(message),
                isError: message.isError,
                content: message.content
              }
            ]
          : []
      )
    }))
  )
}

/** The answers alone, with the files as they are in the end. */
export const after = <R = Backend.Backend>(
  files: Readonly<Record<string, string | Uint8Array>>,
  rounds: ReadonlyArray<ReadonlyArray<Call>>,
  options: Options<R> = {}
) =>
  Effect.gen(function* () {
    const { answers, state } = yield* converse(rounds, options)
    return { answers, state, files: yield* TestBackend.files, requests: yield* TestBackend.requests }
  }).pipe(Effect.provide(TestBackend.layer({ files })))

export const readCall = (file_path: string, more: Json.JsonObject = {}): Call => ["read_file", { file_path, ...more }]
export const write = (file_path: string, content: string): Call => ["write_file", { file_path, content }]
export const edit = (file_path: string, old_string: string, new_string: string, more: Json.JsonObject = {}): Call => [
  "edit_file",
  { file_path, old_string, new_string, ...more }
]

/** A change elsewhere, between two rounds. */
export const elsewhere = (effect: Effect.Effect<unknown, BackendError.BackendError>): Tool.Tool =>
  Tool.make("elsewhere", { description: "Elsewhere", parameters: {}, execute: () => Effect.as(effect, "done") })

export const eventsOf = <Tag extends AgentEvent.AgentEvent["_tag"]>(
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  tag: Tag
): ReadonlyArray<AgentEvent.Of<Tag>> => events.filter((event): event is AgentEvent.Of<Tag> => event._tag === tag)
