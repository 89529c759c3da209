/** The door of the chat: what the program gives it, and what it gives back. */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Agent from "../../../core/Agent.ts"
import type { Principal } from "../../../core/Approval.ts"
import type { ChatModel } from "../../../core/ChatModel.ts"
import type { HumanMessage } from "../../../core/Message.ts"
import type { Prices } from "../../../core/Usage.ts"
import type { Bindings } from "../input/bindings.ts"
import type { Theme } from "../render/themes.ts"

/**
 * The treatment of calls that ask: a person is asked about all of them (`ask`), about all but changes of files
 * (`auto-edit`), none of them may run until the plan is accepted (`plan`), or all of them run (`yolo`).
 */
export type Mode = "ask" | "auto-edit" | "plan" | "yolo"

/** Something that went wrong, and what to do about it, for a person. */
export interface Problem {
  readonly message: string
}

/**
 * The agent that talks, by the names that people know, and the facts about its model. `chatModel` writes summaries; else
 * the one of the context does.
 */
export interface Setup<out E, out R> {
  readonly agent: Agent.Agent<unknown, E, R>
  readonly name: string
  readonly model: string
  readonly prices?: Prices | undefined
  readonly chatModel?: Layer.Layer<ChatModel, Problem> | undefined
}

/** Effect of a slash command: it shows Markdown, or says something to the agent. */
export type Said =
  | { readonly _tag: "Show"; readonly markdown: string }
  | { readonly _tag: "Send"; readonly input: string | HumanMessage }

/**
 * A slash command beside those of the chat: of a file, of an MCP server's prompts, of the program. One with the name of
 * a command of the chat takes its place. `argument` says what stands behind the name, if anything; `note` tells the
 * person something meanwhile.
 */
export interface Command {
  readonly name: string
  readonly description: string
  readonly argument?: string | undefined
  readonly run: (argument: string, note: (text: string) => void) => Effect.Effect<Said, Problem>
}

/** A model or an agent that can be chosen. */
export interface Choice {
  readonly name: string
  readonly description?: string | undefined
}

/**
 * The options of a chat.
 *
 * `setup` is who talks first; `choose` makes another one, with another agent or model. The agent should take `Backend`
 * from its context, so that `/undo` can keep what files were, and ask the `Approvals` of its context, which the chat
 * provides. `resumes` goes on with what the thread was at. `first` is said at once. `history` is a file of what was said
 * before, `draft` one that keeps what is being written. `resumeCommand` is printed at the end.
 */
export interface Options<out E, out R> {
  readonly threadId: string
  readonly setup: Setup<E, R>
  readonly choose?:
    | ((choice: { readonly agent?: string; readonly model?: string }) => Effect.Effect<Setup<E, R>, Problem>)
    | undefined
  readonly agents?: ReadonlyArray<Choice> | undefined
  readonly models?: ReadonlyArray<Choice> | undefined
  /** Those that there are at the moment. */
  readonly commands?: (() => ReadonlyArray<Command>) | undefined
  readonly mode?: Mode | undefined
  /** The limits of a run: US dollars, tokens. */
  readonly limits?: { readonly cost?: number | undefined; readonly tokens?: number | undefined } | undefined
  readonly theme?: Theme | undefined
  /** Keeps a theme for the chats to come. */
  readonly onTheme?: ((theme: Theme) => Effect.Effect<void, Problem>) | undefined
  readonly bindings?: Bindings | undefined
  readonly plain?: boolean | undefined
  readonly resumes?: boolean | undefined
  readonly first?: string | HumanMessage | undefined
  readonly folder?: string | undefined
  readonly history?: string | undefined
  readonly draft?: string | undefined
  readonly principal?: Principal | undefined
  /** Keeps other processes from the thread until the scope of a turn ends. */
  readonly hold?: ((threadId: string) => Effect.Effect<unknown, Problem, Scope.Scope>) | undefined
  readonly resumeCommand?: ((threadId: string) => string) | undefined
}

/** The end of a chat: the thread that it was in last. */
export interface Left {
  readonly threadId: string
}
